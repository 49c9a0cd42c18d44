"""Outputs of the real command: whole or not at all, wherever they go."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTBINS = Path(__file__).parents[2] / "testbins"
ELF = TESTBINS / "x86-64" / "shapes.pie"
RECORDING = TESTBINS / "recordings" / "x86-64-shapes.pie.perf.data"
CONVERT = (sys.executable, "-m", "lbr2pgo", "convert", RECORDING, "--binary", ELF)

Done = subprocess.CompletedProcess[bytes]


def convert(*words: object, **options: object) -> Done:
    command = [os.fspath(word) for word in (*CONVERT, *words)]  # type: ignore[call-overload]
    return subprocess.run(command, capture_output=True, **options)  # type: ignore[call-overload,no-any-return]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the outputs hold when all goes well."""
    folder = tmp_path_factory.mktemp("good")
    assert convert("--llvm", folder / "llvm", "--fdata", folder / "fdata").returncode == 0
    return {name: (folder / name).read_bytes() for name in ("llvm", "fdata")}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 KB, which root can mount."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here (needs root)")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def refused(done: Done, *parts: bytes) -> None:
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr


def test_a_full_disk_leaves_the_old_file(small_disk: Path, good) -> None:
    old = small_disk / "fdata"
    old.write_bytes(b"old")
    (small_disk / "filler").write_bytes(bytes(8192))
    assert len(good["fdata"]) > 4096
    refused(convert("--fdata", old), b"The disk is full")
    assert old.read_bytes() == b"old"
    assert sorted(os.listdir(small_disk)) == ["fdata", "filler"]


def test_a_size_limit_leaves_the_old_file(tmp_path: Path) -> None:
    old = tmp_path / "llvm"
    old.write_bytes(b"old")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    # Without a cache of compiled loops, which would be written too.
    refused(convert("--llvm", old, preexec_fn=limit), b"size limit")
    assert old.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["llvm"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_kill_at_any_moment_leaves_a_whole_file(tmp_path: Path, good, number: int) -> None:
    path = tmp_path / "llvm"
    for milliseconds in (300, 900):
        path.write_bytes(b"old")
        command = [os.fspath(word) for word in (*CONVERT, "--llvm", path)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(milliseconds / 1000)
        process.send_signal(number)
        process.communicate()
        assert path.read_bytes() in (b"old", good["llvm"])
        if number == signal.SIGKILL:  # which leaves no time to tidy up
            for unfinished in tmp_path.glob(".lbr2pgo-*"):
                unfinished.unlink()


def test_converts_at_once_to_one_path(tmp_path: Path, good) -> None:
    path = tmp_path / "fdata"
    command = [os.fspath(word) for word in (*CONVERT, "--fdata", path)]
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert path.read_bytes() == good["fdata"]
    assert os.listdir(tmp_path) == ["fdata"]


@pytest.mark.parametrize(
    "name", [b"with blanks", b"line\nbreak", b"\xff\xfe", b"-dash", "ünïcode".encode(), b"\x1b[31m"]
)
def test_odd_paths(tmp_path: Path, good, name: bytes) -> None:
    """As inputs and as outputs, with a locale that knows ASCII only too."""
    folder = tmp_path / os.fsdecode(name)
    folder.mkdir()
    (folder / "in").write_bytes(RECORDING.read_bytes())
    (folder / "elf").write_bytes(ELF.read_bytes())
    (folder / "elf").chmod(0o755)
    words = (*CONVERT[:4], folder / "in", "--binary", folder / "elf", "--fdata", folder / "out")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}
    for options in ({}, {"env": environment}):
        done = subprocess.run(list(map(os.fspath, words)), capture_output=True, **options)
        assert done.returncode == 0, done.stderr
        assert (folder / "out").read_bytes() == good["fdata"]
        assert b"\x1b" not in done.stdout + done.stderr


def test_a_link_stays_a_link(tmp_path: Path, good) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to("there/target")
    for _ in range(2):  # it dangles first
        assert convert("--fdata", link).returncode == 0
        assert link.is_symlink()
        assert (tmp_path / "there" / "target").read_bytes() == good["fdata"]


def test_outputs_follow_links_of_inputs_only_to_refuse(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(RECORDING)
    before = RECORDING.read_bytes()
    refused(convert("--fdata", link), b"over an input")
    assert RECORDING.read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_nothing_unfinished(tmp_path: Path, number: int) -> None:
    """A pipe that nobody reads holds the run up in the middle of its second output."""
    first, pipe, spool = tmp_path / "out" / "llvm", tmp_path / "pipe", tmp_path / "tmp"
    first.parent.mkdir()
    spool.mkdir()
    os.mkfifo(pipe)
    words = [os.fspath(word) for word in (*CONVERT, "--llvm", first, "--fdata", pipe)]
    process = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(spool)},
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not first.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.5)  # now it waits for the pipe's reader: before, a signal may come just too early
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert b"Traceback" not in said
    assert os.listdir(first.parent) == ["llvm"]
    assert os.listdir(spool) == []
