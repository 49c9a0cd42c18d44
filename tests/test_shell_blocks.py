"""The shell blocks of README and docs, run in the order of their page, on a program of no project.

Blocks of kind `sh` are run. Those of kind `console` are not: they need a branch recorder, a kernel
tree, a nightly compiler or a tool that is in no distribution, and their pages say so. What other
tests run as it stands is named here, with the test.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from builders.fixtures import ROOT, Tool

PROGRAM = Path(__file__).parent / "docs_program"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)

RUN_ELSEWHERE = {
    "make demo": ".ci/run and the other targets of the Makefile",
    "pip install": "tests/test_packaging.py",
    "cmake -S examples/interp-cmake": "tests/test_packaging.py",
    "cmake -S . -B build -D": "tests/share/test_build_systems.py",
    "--build 'cmake --fresh": "tests/test_examples.py",
    "--train 'build/json": "tests/test_examples.py",
}
"""Blocks that hold these words, and where they are run."""

NAMES = {
    "clang": "clang-22", "clang++": "clang++-22", "llvm-bolt": "llvm-bolt-22",
    "llvm-profdata": "llvm-profdata-22", "llvm-profgen": "llvm-profgen-22",
}  # fmt: skip
"""Debian's names of the tools that a page calls by their plain ones."""


def blocks(page: Path) -> list[str]:
    found = _BLOCK.findall(page.read_text())
    return [block for block in found if not any(words in block for words in RUN_ELSEWHERE)]


WITH_BLOCKS = [page for page in PAGES if blocks(page)]


def test_pages_have_blocks_to_run() -> None:
    names = {page.name for page in WITH_BLOCKS}
    assert {"README.md", "getting-started.md", "builds.md", "gcc.md"} <= names


@pytest.fixture
def folder(tmp_path: Path, tool: Tool) -> Path:
    """The program, built once as `app`, and copies for pages that compare two."""
    shutil.copytree(PROGRAM, tmp_path / "work")
    (tmp_path / "bin").mkdir()
    for plain, name in NAMES.items():
        (tmp_path / "bin" / plain).symlink_to(tool(name))
    tool("qemu-x86_64")
    work = tmp_path / "work"
    flags = ("-O2", "-g", "-fdebug-info-for-profiling", "-Wl,--emit-relocs")
    subprocess.run([tool("clang-22"), *flags, "app.c", "-o", "app"], cwd=work, check=True)
    for name in ("before", "after"):
        shutil.copy(work / "app", work / name)
    (work / "training.input").write_text("")
    return work


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: page.name)
def test_every_block_of_a_page_runs(page: Path, folder: Path) -> None:
    tools = f"{folder.parent / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    plain = {k: v for k, v in os.environ.items() if k not in ("CFLAGS", "CXXFLAGS", "LDFLAGS")}
    environment = {**plain, "PATH": tools, "CC": "clang"}
    said = ""
    for block in blocks(page):
        done = subprocess.run(
            ["sh", "-e", "-c", block], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        said += done.stdout + done.stderr
    for stale in re.findall(r"([0-9.]+)% of all profiled functions\) have invalid", said):
        assert float(stale) < 20, "the page gives BOLT a profile of another build"
    outputs = {
        subprocess.run([program], cwd=folder, capture_output=True, text=True, check=True).stdout
        for program in folder.glob("app*")
        if os.access(program, os.X_OK) and program.suffix in ("", ".pgo", ".bolt")
    }
    assert len(outputs) == 1
