"""The committed test programs and recordings are what their manifest says."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from builders.fixtures import TESTBINS, Tool


def manifest() -> dict[str, Any]:
    return tomllib.loads((TESTBINS / "MANIFEST.toml").read_text())


@pytest.mark.parametrize("name", manifest())
def test_a_file_is_as_the_manifest_says(name: str) -> None:
    data = (TESTBINS / name).read_bytes()
    assert len(data) == manifest()[name]["size"]
    assert hashlib.sha256(data).hexdigest() == manifest()[name]["sha256"]


def test_every_file_is_in_the_manifest() -> None:
    folders = ("x86-64", "aarch64", "riscv64", "recordings")
    files = {
        f"{folder}/{path.name}" for folder in folders for path in (TESTBINS / folder).iterdir()
    }
    assert files == set(manifest())


@pytest.mark.slow
def test_a_build_elsewhere_gives_the_same_bytes(tmp_path: Path, tool: Tool) -> None:
    version = subprocess.run(
        [tool("clang-22"), "--version"], capture_output=True, text=True, check=True
    ).stdout
    if "22.1.8 (1~deb12u1)" not in version:
        pytest.skip("built with another clang 22 than the one at hand")
    shutil.copytree(TESTBINS, tmp_path / "elsewhere", ignore=shutil.ignore_patterns("x86-64"))
    subprocess.run(
        ["make", "-s", "x86-64/interp.pie", "x86-64/shapes.pie"],
        cwd=tmp_path / "elsewhere",
        check=True,
    )
    for name in ("interp.pie", "shapes.pie"):
        built = (tmp_path / "elsewhere" / "x86-64" / name).read_bytes()
        assert built == (TESTBINS / "x86-64" / name).read_bytes()
