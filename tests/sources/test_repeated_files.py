"""Inputs that come twice."""

from __future__ import annotations

import os
from pathlib import Path

from lbr2pgo.sources.repeated_files import repetitions


def test_the_same_file_and_copies_of_it_are_found(tmp_path: Path) -> None:
    a, copy, other, longer = (tmp_path / name for name in ("a", "copy", "other", "longer"))
    for path, content in ((a, b"one"), (copy, b"one"), (other, b"two"), (longer, b"three")):
        path.write_bytes(content)
    assert list(repetitions([a, other, longer, copy, a])) == [
        f"{copy} holds the same as {a}: its samples count again",
        f"{a} is given again: its samples count again",
    ]
    assert list(repetitions([a, other, longer])) == []


def test_directories_of_threads_are_compared_file_by_file(tmp_path: Path) -> None:
    a, copy, other = (tmp_path / name for name in ("a", "copy", "other"))
    for path, content in ((a, b"one"), (copy, b"one"), (other, b"two")):
        path.mkdir()
        (path / "data").write_bytes(b"head")
        (path / "data.0").write_bytes(content)
    (found,) = repetitions([a, other, copy])
    assert found.startswith(f"{copy} holds the same as {a}")


def test_pipes_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert list(repetitions([tmp_path / "pipe", tmp_path / "pipe", Path("-"), Path("-")])) == []
