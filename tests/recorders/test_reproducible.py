"""Reproducible recordings: alike for other paths, users, environments and loads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from builders.fixtures import Tool

import lbr2pgo

Build = Callable[..., Path]
pytestmark = pytest.mark.slow

RECORD = ("-m", "lbr2pgo", "record", "--reproducible", "-c", "211")
PROGRAMS = ("answers", "calls", "processes", "threads", "turns", "leader", "loading")
"""One asks for what differs, one forks, three have threads, which compete in one and outlive the
first in another, and one loads a library."""


def recorded(
    program: Path, where: Path, *words: str, as_user: str = "", **environment: str
) -> tuple[bytes, str]:
    """The sample profile of exact counts, and what was said."""
    where.mkdir(mode=0o777)
    where.chmod(0o777)
    user = ("setpriv", f"--reuid={as_user}", "--clear-groups") if as_user else ()
    files = where / "perf.data", where / "exact.npz"
    record = (*RECORD, "--exact", files[1], "-o", files[0], "--", program, *words)
    done = subprocess.run(
        [*user, sys.executable, *record],
        env={**os.environ, **environment}, cwd=where, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode in range(128), done.stderr
    profile = where / "prof"
    lbr2pgo.convert(files[1], program, llvm=profile)
    return profile.read_bytes(), done.stderr


@contextmanager
def busy() -> Iterator[None]:
    """Other programs want both processors."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.mark.parametrize("name", PROGRAMS)
def test_paths_environments_and_loads_make_no_difference(
    name: str, build: Build, tmp_path: Path
) -> None:
    program = build(name, "x86-64", "-g")
    first = recorded(program, tmp_path / "one")
    deep = tmp_path / "far" / "away" / "from" / "there"
    shutil.copytree(program.parent, deep)
    changed = {"LC_ALL": "C", "LOGNAME": "nobody", "MORE": "x" * 999, "TZ": "Asia/Tokyo"}
    with busy():
        assert recorded(deep / program.name, tmp_path / "two", **changed)[0] == first[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_users_make_no_difference(build: Build, tool: Tool) -> None:
    tool("setpriv")
    with TemporaryDirectory(dir="/tmp") as name:  # pytest's own are its user's alone
        place = Path(name)
        place.chmod(0o755)
        program = Path(shutil.copy(build("answers", "x86-64", "-g"), place))
        cache = {"XDG_CACHE_HOME": str(place / "other")}
        first = recorded(program, place / "one")
        assert recorded(program, place / "other", as_user="65534", **cache)[0] == first[0]


@pytest.mark.parametrize("machine", ["aarch64", "riscv64"])
def test_other_machines_are_told_the_same(machine: str, build: Build, tmp_path: Path) -> None:
    program = build("answers", machine, "-g")
    one, other = (recorded(program, tmp_path / name) for name in ("one", "two"))
    assert one[0] == other[0]


@pytest.mark.parametrize(
    ("name", "words", "what"),
    [
        ("answers", ("x",), "the time"),
        ("threads", (), ""),
        ("corners", (), ""),
        ("turns", ("x",), "when its threads wake from waiting"),
    ],
)
def test_what_may_differ_is_named(
    name: str, words: tuple[str, ...], what: str, build: Build, tmp_path: Path
) -> None:
    _, said = recorded(build(name, "x86-64", "-g"), tmp_path / "one", *words)
    assert ("Other runs may differ by" in said) == bool(what)
    assert what in said


def test_variables_can_be_given(build: Build, tmp_path: Path) -> None:
    env = shutil.which("env")
    assert env is not None
    plain, more = (
        subprocess.run(
            [sys.executable, *RECORD, "-o", tmp_path / "perf.data", "--", *given, env],
            env={**os.environ, "MORE": "1"}, capture_output=True, text=True,
        ).stdout
        for given in ((), (env, "MINE=2"))
    )  # fmt: skip
    assert "MORE" not in plain
    assert "TZ=UTC" in plain
    assert "MINE=2" in more
