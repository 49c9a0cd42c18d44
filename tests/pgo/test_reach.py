from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from lbr2pgo.pgo.flags import BuildFlags
from lbr2pgo.pgo.reach import ByName, ByPlaceholder, ByVariables, way_for

ROOT = Path(__file__).parents[2]
FLAGS = BuildFlags(("-g", "-fuse=a b"), ("-Wl,--build-id",))


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Programs that print their arguments, each in brackets."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("clang", "g++-12", "strip", "clang-format"):
        (folder / name).write_text('#!/bin/sh\nprintf "[%s]" "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def run(folder: Path, *words: str) -> str:
    command = [str(folder / words[0]), *words[1:]]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_flags_go_where_the_command_says_or_into_variables() -> None:
    assert type(way_for("make")) is ByVariables
    assert isinstance(way_for("zig cc {flags} a.c"), ByPlaceholder)
    assert isinstance(way_for("a {cflags} {ldflags}"), ByPlaceholder)


@pytest.mark.parametrize(
    "page", ["README.md", "docs/builds.md", "docs/zig.md", "lbr2pgo/cli/pgo.py"]
)
def test_examples_have_our_flags_behind_the_build_s_own(page: str) -> None:
    """Of several `-O` the last wins: `-O2` behind `{flags}` undid a training build's `-O1`."""
    assert not re.search(r"\{c?flags\}[^'\"`\n]* -O", (ROOT / page).read_text())


def test_compilers_get_flags_behind_their_own_and_none_to_strip(
    tools: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "compilers"
    path = f"{tools}{os.pathsep}/usr/bin{os.pathsep}/bin"
    settings = ByName(folder).settings(FLAGS, {"PATH": path, "CXXFLAGS": "-O3"})
    assert settings == {
        "PATH": f"{folder}{os.pathsep}{path}",
        # As a build gets them that takes flags from there: one may do so in parts.
        "CFLAGS": "-O2", "CXXFLAGS": "-O3", "LDFLAGS": "",
    }  # fmt: skip
    assert run(folder, "clang", "-s", "a b.c", "-o", "x") == (
        "[a b.c][-o][x][-g][-fuse=a b][-Wl,--build-id][-Wno-unused-command-line-argument]"
    )
    assert run(folder, "g++-12", "-c") == "[-c][-g][-fuse=a b][-Wl,--build-id]"
    assert not (folder / "clang-format").exists()


def test_strip_leaves_a_file_or_copies_it(tools: Path, tmp_path: Path) -> None:
    folder = tmp_path / "compilers"
    ByName(folder).settings(FLAGS, {"PATH": f"{tools}{os.pathsep}/usr/bin{os.pathsep}/bin"})
    program = tmp_path / "program"
    program.write_text("whole")
    assert run(folder, "strip", "--strip-all", str(program)) == ""
    run(folder, "strip", "-g", "-o", str(tmp_path / "copy"), str(program))
    assert program.read_text() == (tmp_path / "copy").read_text() == "whole"
