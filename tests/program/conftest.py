"""Lets tests import `builders` (pytest's import mode keeps this tree off the path); programs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))


@pytest.fixture(scope="session")
def link(
    tmp_path_factory: pytest.TempPathFactory,
    tool: Callable[[str], str],
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> Callable[..., Path]:
    """`link(assembly, machine="x86-64")`: a program of this assembly, given as text or a path."""

    def build(assembly: str | Path, *flags: str, machine: str = "x86-64") -> Path:
        target = tmp_path_factory.mktemp("linked") / "program"
        source = target.with_suffix(".s")
        source.write_text(assembly if isinstance(assembly, str) else assembly.read_text())
        triple = f"--triple={machine.replace('-', '_')}-linux-gnu"
        run(tool("llvm-mc-22"), triple, "--mattr=+all", "--filetype=obj", source, "-o",
            target.with_suffix(".o"))  # fmt: skip
        run(tool("ld.lld-22"), target.with_suffix(".o"), "-o", target, *flags)
        return target

    return build


@pytest.fixture(scope="session")
def compiled(
    tmp_path_factory: pytest.TempPathFactory,
    tool: Callable[[str], str],
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> Callable[..., Path]:
    """`compiled("gcc", source, "-O2")`: a program of this source, which is text."""

    def build(compiler: str, source: str, *flags: str) -> Path:
        target = tmp_path_factory.mktemp("compiled") / "program"
        file = target.with_suffix(".cc" if "++" in compiler else ".c")
        file.write_text(source)
        run(tool(compiler), file, *flags, "-o", target, cwd=target.parent)
        return target

    return build
