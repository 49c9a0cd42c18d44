"""Which functions lie over which; the oracle paints their bytes one by one."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from lbr2pgo.program.jit.made_functions import JitFunction, laid, newest, read_made
from lbr2pgo.support.errors import InputError


def some(seed: int) -> list[JitFunction]:
    choose = random.Random(seed)
    return [
        JitFunction(choose.randrange(60), choose.randrange(1, 12), str(i).encode(), time=i // 2)
        for i in range(25)
    ]


def overlap(one: JitFunction, other: JitFunction) -> bool:
    return one.address < other.end and other.address < one.end


@pytest.mark.parametrize("seed", range(20))
def test_of_functions_over_one_another_the_last_counts(seed: int) -> None:
    functions = some(seed)
    wanted: list[JitFunction] = []
    for function in reversed(functions):
        if not any(overlap(function, kept) for kept in wanted):
            wanted.insert(0, function)
    assert newest(functions) == wanted


@pytest.mark.parametrize("most", [0, 3, 100])
@pytest.mark.parametrize("seed", range(10))
def test_what_took_anothers_place_stands_apart(seed: int, most: int) -> None:
    functions = some(seed)
    first, later = laid(functions, most)
    assert len(later) <= most + 1  # of one time with the first of them
    assert not any(overlap(a, b) for i, a in enumerate(first) for b in first[:i])
    assert all(any(overlap(a, b) for b in functions if b is not a) for a in later)
    if most == 100:
        assert sorted([*first, *later], key=functions.index) == functions
    else:
        assert functions[-1] in [*first, *later]


@pytest.mark.parametrize(
    ("address", "size"), [(-1, 4), (0x1000, 0), (1 << 47, 1), ((1 << 47) - 1, 2)]
)
def test_no_process_has_code_elsewhere(address: int, size: int) -> None:
    assert not JitFunction(address, size, b"f").is_possible
    assert JitFunction((1 << 47) - 2, 2, b"f").is_possible


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
