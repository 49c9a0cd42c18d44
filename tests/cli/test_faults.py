"""Faults and signals at every point of a run: outputs are old or new, and the error is clear."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from builders.recordings import PIE, RECORDING

SOURCE = Path(__file__).parent / "programs" / "failing_calls.c"
OUTPUTS = ("llvm", "fdata", "counts")
OLD = b"old"


@dataclass(frozen=True)
class Place:
    """Where a run writes, with something old at every output, and where it may spool."""

    out: Path
    spool: Path

    def words(self, *start: str) -> list[str]:
        wanted = [word for name in OUTPUTS for word in (f"--{name}", self.out / name)]
        words = [*(start or ("-m", "lbr2pgo")), "convert", RECORDING, "--binary", PIE, *wanted]
        return [sys.executable, *map(str, words)]

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return {**os.environ, "TMPDIR": str(self.spool), **(more or {})}

    def refill(self) -> None:
        for name in OUTPUTS:
            (self.out / name).write_bytes(OLD)

    def contents(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.out.iterdir()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path / "out", tmp_path / "spool")
    for folder in (found.out, found.spool):
        folder.mkdir()
    found.refill()
    return found


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the outputs hold when all goes well."""
    folder = tmp_path_factory.mktemp("good")
    whole = Place(folder, folder)
    subprocess.run(whole.words(), check=True, capture_output=True)
    return whole.contents()


def assert_old_or_new(place: Place, good: Mapping[str, bytes]) -> None:
    found = place.contents()
    assert set(found) == set(OUTPUTS)
    for name, content in found.items():
        assert content in (OLD, good[name]), name


# ---------------------------------------------------------------------------- faults

BEGIN = """
import ctypes
ctypes.CDLL(None).begin_faults()
from lbr2pgo.__main__ import command
command()
"""
FAULTS = {"write": errno.ENOSPC, "rename": errno.EACCES, "fsync": errno.EIO, "mmap": errno.ENOMEM}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, tool, run) -> Path:
    target: Path = tmp_path_factory.mktemp("faults") / "failing_calls.so"
    run(tool("gcc"), "-shared", "-fPIC", "-O1", SOURCE, "-o", target, "-ldl")
    return target


Fail = Callable[[str, int], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def fail(place: Place, library: Path) -> Fail:
    """Run with the Nth call of a function failing; the number of calls is written to `count`."""

    def run(call: str, at: int) -> subprocess.CompletedProcess[str]:
        faults = {
            "LD_PRELOAD": str(library), "FAULT_CALL": call, "FAULT_AT": str(at),
            "FAULT_ERROR": str(FAULTS[call]), "FAULT_COUNT": str(place.out.parent / "count"),
        }  # fmt: skip
        return subprocess.run(
            place.words("-c", BEGIN), env=place.environment(faults), capture_output=True, text=True,
            timeout=60,
        )  # fmt: skip

    return run


@pytest.mark.parametrize("most", [10, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("call", FAULTS)
def test_a_call_that_fails_is_an_error_and_leaves_old_or_new_outputs(
    call: str, most: int, place: Place, good: dict[str, bytes], fail: Fail
) -> None:
    assert fail(call, 0).returncode == 0
    calls = int((place.out.parent / "count").read_text())
    assert calls >= (1 if call == "mmap" else len(OUTPUTS))
    for at in range(1, calls + 1, -(-calls // most)):
        place.refill()
        done = fail(call, at)
        told = f"{call} {at} of {calls}: {done.returncode}\n{done.stderr}"
        assert done.returncode in (0, 2), told
        assert "Traceback" not in done.stderr, told
        assert "internal error" not in done.stderr, told
        assert_old_or_new(place, good)
        assert os.listdir(place.spool) == [], told
        if done.returncode == 0:
            assert place.contents() == good, told
        else:
            assert "lbr2pgo: error: " in done.stderr, told


# ---------------------------------------------------------------------------- signals


@pytest.mark.parametrize(
    "moments", [4, pytest.param(50, marks=pytest.mark.long)], ids=["few", "many"]
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_a_signal_at_any_moment_leaves_old_or_new_outputs(
    number: signal.Signals, moments: int, place: Place, good: dict[str, bytes]
) -> None:
    begin = time.monotonic()
    subprocess.run(place.words(), check=True, capture_output=True)
    whole = time.monotonic() - begin
    for moment in range(moments):
        place.refill()
        process = subprocess.Popen(
            place.words(), env=place.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        time.sleep(whole * (moment + 0.5) / moments)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        if number == signal.SIGINT and b"Traceback" in said and b", in command" not in said:
            assert set(place.contents().values()) == {OLD}  # Python was on its way to the command
            continue
        assert process.returncode in (0, -number, 128 + number), said.decode()
        left = set(place.contents()) - set(OUTPUTS)
        if number == signal.SIGKILL:
            for name in left:
                assert name.startswith(".lbr2pgo-")
                (place.out / name).unlink()
        else:
            assert b"Traceback" not in said, said.decode()
            assert left == set()
        assert_old_or_new(place, good)
        assert os.listdir(place.spool) == []
