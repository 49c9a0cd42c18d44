"""Committed profiles, for the tree as it is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.fixtures import Tool

from lbr2pgo.provenance.carrying import carry_committed
from lbr2pgo.provenance.told import FORMAT, path_beside
from lbr2pgo.support.errors import InputError, OutputError

OLD = "int f(int x) {\n  int y = g(x);\n  y += h(y);\n  return y;\n}\n"
NEW = OLD.replace("{\n", "{\n  if (!x)\n    return 0;\n", 1)
PROFILE = "f:90:9\n 1: 9 g:9\n 2: 9 h:9\n 3: 9\n"


@pytest.fixture
def profile(tmp_path: Path, tool: Tool, run: Callable[..., object]) -> Path:
    """In a repository, of its first commit; the source is another one now."""
    git = (tool("git"), "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@example")
    run(*git, "init", "-q")
    (tmp_path / "a.c").write_text(OLD)
    run(*git, "add", "a.c")
    run(*git, "commit", "-qm", "one")
    path = tmp_path / "profiles" / "app.prof"
    path.parent.mkdir()
    path.write_text(PROFILE)
    tell(path, "HEAD")
    (tmp_path / "a.c").write_text(NEW)
    (tmp_path / ".gitignore").write_text("build\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "a.c").write_text("int f(int x) {\n  nothing();\n}\n")
    return path


def tell(profile: Path, revision: str | None) -> None:
    told = {
        "format": FORMAT, "version": "1", "output": "llvm", "sha256": "", "program": "app",
        "build_id": None, "compilers": [], "flags": [], "revision": revision, "recordings": [],
        "samples": None, "options": {},
    }  # fmt: skip
    path_beside(profile).write_text(json.dumps(told))


def test_it_is_carried_to_the_working_tree_without_what_builds_make(profile: Path) -> None:
    done = carry_committed(profile)
    assert done.said == f"{profile}: 100.0% of the counts carried since HEAD"
    assert done.share == 1.0
    out = profile.with_name("out")
    assert done.write(out)
    assert out.read_text() == "f:90:9\n 3: 9 g:9\n 4: 9 h:9\n 5: 9\n"


def test_a_file_that_holds_the_same_stays(profile: Path) -> None:
    out = profile.with_name("out")
    carry_committed(profile).write(out)
    os.utime(out, (1, 1))
    assert not carry_committed(profile).write(out)
    assert out.stat().st_mtime == 1
    assert sorted(path.name for path in profile.parent.iterdir()) == [
        "app.prof", "app.prof.json", "out",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("revision", "why"),
    [
        (None, "it has no commit in it"),
        ("0123abcd", "0123abcd: git: not a valid object name"),
    ],
)
def test_where_nobody_knows_it_is_used_as_it_is(
    profile: Path, revision: str | None, why: str
) -> None:
    tell(profile, revision)
    done = carry_committed(profile)
    assert done.carried is None
    assert f"is used as it is: {why}" in done.said
    assert len(done.said.splitlines()) == 1
    assert done.share == 1.0
    done.write(profile.with_name("out"))
    assert profile.with_name("out").read_text() == PROFILE


def test_without_provenance_and_outside_of_git(profile: Path, tmp_path_factory) -> None:
    path_beside(profile).unlink()
    assert "it has no provenance (convert --provenance)" in carry_committed(profile).said
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "app.prof"
    elsewhere.write_text(PROFILE)
    tell(elsewhere, "HEAD")
    assert "it is in no git repository" in carry_committed(elsewhere).said


def test_where_hardly_anything_is_left_nothing_is_worth_carrying(profile: Path) -> None:
    (profile.parent.parent / "a.c").write_text("int other(void) {\n  return 1;\n}\n")
    done = carry_committed(profile)
    assert done.share == 0.0
    assert "hardly anything is left since HEAD" in done.said


def test_profiles_of_another_kind_stay(profile: Path) -> None:
    profile.write_text("f:9:9\n 1: 9\n !CFGChecksum: 12\n")
    done = carry_committed(profile)
    assert "does not tell of source lines" in done.said
    assert done.share == 1.0


def test_what_can_not_be_read_or_written(profile: Path) -> None:
    with pytest.raises(OutputError, match="can't be written"):
        carry_committed(profile).write(profile.parent / "absent" / "out")
    path_beside(profile).write_text("{}")
    with pytest.raises(InputError, match="is no provenance"):
        carry_committed(profile)
