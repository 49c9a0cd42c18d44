"""Profiles in a real git repository."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.fixtures import Tool

from lbr2pgo.cli.share import SHARE
from lbr2pgo.profiles.llvm import extbinary
from lbr2pgo.profiles.llvm.text import parse

OLD = "main:9000:10\n 1: 9000 g:10\nf:1000:5\n 1: 1000\n"
NEW = "main:2000:10\n 1: 2000 g:10\nf:8000:5\n 1: 8000\n"

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path, tool: Tool) -> Git:
    """Run git in a repository that is set up as the page says, with nobody's own settings."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER")
           for what in ("NAME", "EMAIL")},
    }  # fmt: skip
    folder = tmp_path / "a project"
    folder.mkdir()

    def run(*words: str) -> str:
        done = subprocess.run(
            [tool("git"), *words], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("init", "-q")
    run("config", "--add", "include.path", str(SHARE / "git" / "lbr2pgo.gitconfig"))
    (folder / ".gitattributes").write_text("*.prof diff=lbr2pgo\n")
    return run


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    return tmp_path / "a project" / "the app.prof"


def commit(git: Git) -> None:
    git("add", "-A")
    git("commit", "-qm", "x")


def test_a_changed_profile_is_reviewed(git: Git, profile: Path) -> None:
    profile.write_text(OLD)
    commit(git)
    profile.write_text(NEW)
    said = git("diff")
    assert said.splitlines()[0] == "the app.prof"
    assert "2 functions with another share" in said
    assert " 8000" not in said


def test_profiles_that_come_and_go(git: Git, profile: Path) -> None:
    (profile.parent / "x").write_text("")
    commit(git)
    profile.write_text(OLD)
    commit(git)
    assert git("diff", "HEAD~1", "HEAD") == "the app.prof: a new profile\n"
    assert git("diff", "HEAD", "HEAD~1") == "the app.prof: the profile is gone\n"


def test_a_binary_profile_is_shown_as_text(git: Git, profile: Path) -> None:
    for text in (OLD, NEW):
        extbinary.write(parse(text.encode().splitlines(), "a profile"), profile)
        commit(git)
    said = git("log", "-p", "-1", "--", profile.name)
    assert "-main:9000:10" in said
    assert "+main:2000:10" in said


@pytest.mark.parametrize("new", ["", "1 main 0 1 main 5 0 7\n"], ids=["empty", "another kind"])
def test_what_can_not_be_compared_is_shown_by_lines_and_hides_no_other_file(
    git: Git, profile: Path, new: str
) -> None:
    other = profile.with_name("z")
    for text, more in ((OLD, "1\n"), (new, "2\n")):
        profile.write_text(text)
        other.write_text(more)
        commit(git)
    for words in (("diff", "HEAD~1", "HEAD"), ("log", "-p", "-1")):
        said = git(*words)
        assert "-main:9000:10" in said
        assert "+2" in said
