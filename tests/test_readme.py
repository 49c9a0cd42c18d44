"""The README's way from a fresh checkout to an optimised program, as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMANDS = re.compile(r"<!-- tests/test_readme.py runs these -->\n```sh\n(.*?)```", re.DOTALL)


@pytest.fixture
def checkout(tmp_path: Path, run) -> Path:
    """What git tracks, as it is in the work tree, and its loops as they were compiled there.

    Compiling them again would take a minute; tests/test_packaging.py does.
    """
    checkout = tmp_path / "checkout"
    names = run("git", "ls-files", "-z", cwd=ROOT).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            put(ROOT / name, checkout / name)
    build = checkout / "build"
    library = build / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    for source in (ROOT / "build" / "cython").rglob("*.c"):
        put(source, build / source.relative_to(ROOT / "build"))
    for module in (ROOT / "lbr2pgo" / "native").glob("*.so"):
        put(module, library / module.relative_to(ROOT))
    return checkout


def put(source: Path, target: Path) -> None:
    """Copy a file, under the time of now: what is copied later counts as made of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())


@pytest.fixture
def environment(tmp_path: Path, run) -> dict[str, str]:
    """A new virtual environment; it sees the packages of this one, to install only what is new."""
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    plain = {k: v for k, v in os.environ.items() if k not in ("CFLAGS", "CXXFLAGS", "LDFLAGS")}
    return {**plain, "PATH": f"{tmp_path / 'venv' / 'bin'}:{os.environ['PATH']}"}


@pytest.mark.slow
def test_three_commands_lead_to_an_optimised_program(
    checkout: Path, environment: dict[str, str], tool, run
) -> None:
    for name in ("cmake", "clang++-22", "llvm-bolt-22", "qemu-x86_64"):
        tool(name)
    found = COMMANDS.search((checkout / "README.md").read_text())
    assert found is not None
    commands = found[1].splitlines()
    assert len(commands) == 3
    for command in commands:
        done = subprocess.run(
            ["sh", "-c", command], cwd=checkout, env=environment, capture_output=True, text=True
        )
        if done.returncode and "No matching distribution" in done.stderr:
            pytest.skip("pip reaches no package registry to build with")
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    built = checkout / "build" / "mini"
    said = [
        run(built / name, checkout / "examples/interp-cmake/scripts/train.mini", "2").stdout
        for name in ("mini-plain", "mini", "mini.bolt")
    ]
    assert said[0] == said[1] == said[2] != ""
    sections = run("readelf", "-S", "-W", built / "mini.bolt").stdout
    assert ".note.bolt_info" in sections
