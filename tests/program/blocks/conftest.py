"""Small programs in assembly."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from builders.bolt import Assemble
from builders.fixtures import Tool

from lbr2pgo.program.program import Program


@pytest.fixture
def assemble(tmp_path: Path, tool: Tool) -> Assemble:
    """`assemble(source, *flags)`: a program of this assembly, linked with these flags."""

    def link(source: str, *flags: str) -> Program:
        (tmp_path / "s.s").write_text(f".text\n{source}\n")
        subprocess.run(
            [tool("clang-22"), "-c", tmp_path / "s.s", "-o", tmp_path / "s.o"], check=True
        )
        command = [tool("ld.lld-22"), *flags, tmp_path / "s.o", "-o", tmp_path / "program"]
        subprocess.run(command, check=True)
        return Program.open(tmp_path / "program")

    return link
