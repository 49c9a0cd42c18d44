from __future__ import annotations

import os
from pathlib import Path

import pytest

from lbr2pgo.support.regular_file import UnfitFileError, read_regular

MOST = 1 << 20


def test_a_file_of_no_more_than_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * MOST)
    assert read_regular(path, MOST) == b"x" * MOST
    with path.open("ab") as stream:
        stream.write(b"x")
    with pytest.raises(UnfitFileError, match="is larger than 1 MB"):
        read_regular(path, MOST)


def test_a_file_without_end(tmp_path: Path) -> None:
    with pytest.raises(UnfitFileError, match="is no regular file"):
        read_regular(Path("/dev/zero"), MOST)
    os.mkfifo(tmp_path / "fifo")  # that nobody writes to: opening it as usual waits
    with pytest.raises(UnfitFileError, match="is no regular file"):
        read_regular(tmp_path / "fifo", MOST)
    with pytest.raises(UnfitFileError, match="is no regular file"):
        read_regular(tmp_path, MOST)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(UnfitFileError, match="is a symbolic link"):
        read_regular(tmp_path / "link", MOST)


def test_a_file_of_another_user(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    own = os.getuid()
    assert read_regular(tmp_path / "file", MOST, {own}) == b"x"
    with pytest.raises(UnfitFileError, match="belongs to another user"):
        read_regular(tmp_path / "file", MOST, {own + 1})


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none", MOST)
