from __future__ import annotations

import os
from pathlib import Path

import pytest

from lbr2pgo.program.jit.made_file import read_made
from lbr2pgo.support.errors import InputError

MOST = 1 << 20


def refused(path: Path, *, is_named: bool) -> str:
    with pytest.raises(InputError) as found:
        read_made(path, MOST, is_named=is_named)
    assert str(path) in found.value.headline
    return found.value.headline


def test_who_may_have_made_what_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "perf-7.map"
    path.write_bytes(b"x")
    assert read_made(path, MOST, is_named=False) == b"x"
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    if path.stat().st_uid == 0:  # that of root is as good
        assert read_made(path, MOST, is_named=False) == b"x"
        os.chown(path, 12345, 12345)
    assert "belongs to another user" in refused(path, is_named=False)
    assert read_made(path, MOST, is_named=True) == b"x"


def test_links_are_followed_where_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    link = tmp_path / "perf-7.map"
    link.symlink_to("file")
    assert "is a symbolic link" in refused(link, is_named=False)
    assert read_made(link, MOST, is_named=True) == b"x"
    link.unlink()
    link.symlink_to("/dev/zero")
    assert "is no regular file" in refused(link, is_named=True)


@pytest.mark.parametrize("is_named", [True, False])
def test_nothing_makes_it_wait_or_grow(tmp_path: Path, is_named: bool) -> None:
    path = tmp_path / "perf-7.map"
    os.mkfifo(path)
    assert "is no regular file" in refused(path, is_named=is_named)
    path.unlink()
    assert "can't be read" in refused(path, is_named=is_named)
    with path.open("wb") as stream:
        stream.truncate(MOST + 1)
    assert "is larger than 1 MB" in refused(path, is_named=is_named)
