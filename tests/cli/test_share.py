from __future__ import annotations

from pathlib import Path

import pytest

FILES = {
    "cmake": "lbr2pgo-config.cmake",
    "make": "lbr2pgo.mk",
    "meson": "lbr2pgo/meson.build",
    "bazel": "lbr2pgo.bzl",
    "git": "lbr2pgo.gitconfig",
}


@pytest.mark.parametrize("build_system", FILES)
def test_the_files_are_where_it_says(command, build_system):
    answer = command("share", build_system)
    assert answer.code == 0
    assert (Path(answer.out.removesuffix("\n")) / FILES[build_system]).is_file()


def test_other_build_systems_are_refused(command):
    answer = command("share", "ant")
    assert answer.code == 2
    assert "cmake" in answer.err
