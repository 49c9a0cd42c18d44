"""Compiles the C++ program of tests/program/programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "program" / "programs"


def compile_program(target: Path, compiler: str, *flags: str) -> Path:
    """Compile the program to `target`, with split debug information, if any, beside it."""
    sources = [SOURCES / "inlining.cpp", SOURCES / "other.cpp"]
    command = [compiler, "-O2", *flags, "-I", SOURCES, "-o", target, *sources]
    done = subprocess.run(command, capture_output=True, text=True, cwd=target.parent)
    assert done.returncode == 0, done.stderr
    return target
