"""Programs to make sample profiles of."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.fixtures import Tool

PROGRAMS = Path(__file__).parents[2] / "programs"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> Callable[..., Path]:
    """`built("clang-22 -O2", "inlining.c")`: a program with debug information, built once.

    Sources are those of tests/programs, or paths.
    """
    known: dict[tuple[str, ...], Path] = {}

    def build(command: str, *sources: str | Path) -> Path:
        key = (command, *map(str, sources))
        if key not in known:
            compiler, *flags = command.split()
            known[key] = tmp_path_factory.mktemp("built") / "program"
            done = subprocess.run(
                [tool(compiler), "-g", *flags, *(PROGRAMS / s for s in sources), "-o", known[key]],
                capture_output=True, text=True, cwd=known[key].parent,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
        return known[key]

    return build
