from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from builders.fixtures import Tool

from lbr2pgo.profiles.carried.source_tree import SourceTree
from lbr2pgo.support.errors import InputError, MissingToolError


def test_source_files_of_a_directory(tmp_path: Path) -> None:
    for name in ("a.c", "sub/b.HPP", "notes.txt", ".git/c.c", "d.c/e.c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("int f(void) { }\n")
    tree = SourceTree.of_directory(tmp_path)
    assert sorted(tree.files) == ["a.c", "d.c/e.c", "sub/b.HPP"]
    assert [each.file for each in tree.by_name["f"]] == ["a.c", "d.c/e.c", "sub/b.HPP"]


def test_of_a_revision(tmp_path: Path, tool: Tool) -> None:
    git = (tool("git"), "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@example")
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "dangling.c").symlink_to("/absent/a.c")
    for number in (1, 2):
        (tmp_path / "a.c").write_bytes(b"int f%d(void) { \xff }\n" % number)
        (tmp_path / "a.txt").write_text("int g(void) { }\n")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", "a"], check=True)
    assert set(SourceTree.of_revision(tmp_path, "HEAD~1").by_name) == {"f1"}
    assert set(SourceTree.of_revision(tmp_path, "HEAD").by_name) == {"f2"}
    with pytest.raises(InputError, match=r"v9: git: not a valid object name: v9\nName a revision"):
        SourceTree.of_revision(tmp_path, "v9")
    with pytest.raises(InputError, match="--output=x: is no revision"):
        SourceTree.of_revision(tmp_path, "--output=x")


def test_what_is_no_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no directory"):
        SourceTree.of_directory(tmp_path / "absent")


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingToolError, match="git is not installed"):
        SourceTree.of_revision(tmp_path, "HEAD")
