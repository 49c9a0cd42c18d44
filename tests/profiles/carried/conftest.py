from __future__ import annotations

import subprocess
import sys

import pytest
from builders.fixtures import Tool
from builders.probed_builds import ProbedBuild, built, recorded


@pytest.fixture(scope="session")
def probed_builds(
    tmp_path_factory: pytest.TempPathFactory, tool: Tool
) -> tuple[ProbedBuild, ProbedBuild]:
    """An old and a new build, each with its own profile."""
    folder, clang = tmp_path_factory.mktemp("probed_builds"), tool("clang-22")

    def command(*words: object) -> None:
        call = [sys.executable, "-m", "lbr2pgo", *map(str, words)]
        subprocess.run(call, check=True, capture_output=True)

    old, new = (
        recorded(built(f"carried_{name}.c", folder / name, clang), command)
        for name in ("old", "new")
    )
    return old, new
