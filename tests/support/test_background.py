from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from lbr2pgo.support import background
from lbr2pgo.support.background import Background


def test_the_result_comes_from_another_process() -> None:
    assert Background(os.getpid).result() != os.getpid()


def test_a_large_result_is_whole() -> None:
    """Larger than a pipe holds, so the copy waits for its reader."""
    assert Background(bytes, 1 << 20).result() == bytes(1 << 20)


def test_the_process_goes_on_meanwhile() -> None:
    begun = time.monotonic()
    waiting = Background(time.sleep, 0.3)
    assert time.monotonic() - begun < 0.3
    waiting.result()
    assert time.monotonic() - begun >= 0.3


def test_what_the_function_raises_is_raised_here(capfd: pytest.CaptureFixture[str]) -> None:
    broken = Background(int, "x")
    with pytest.raises(ValueError, match="invalid literal"):
        broken.result()
    assert capfd.readouterr() == ("", "")


def die_in_a_copy(of: int) -> str:
    if os.getpid() != of:
        os.kill(os.getpid(), signal.SIGKILL)
    return "done here"


def test_where_the_copy_dies_the_function_is_called_here() -> None:
    assert Background(die_in_a_copy, os.getpid()).result() == "done here"


def test_what_can_not_be_sent_is_made_here() -> None:
    lock = Background(threading.Lock).result()
    assert lock.acquire(blocking=False)


def test_beside_other_threads_no_copy_is_made() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(Background(os.getpid).result()))
    thread.start()
    thread.join()
    assert found == [os.getpid()]


def test_on_one_processor_no_copy_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background.os, "sched_getaffinity", lambda _: {0})
    assert Background(os.getpid).result() == os.getpid()


def test_no_process_and_no_pipe_is_left() -> None:
    before = os.listdir("/proc/self/fd")
    processes = [Background(os.getpid).result() for _ in range(20)]
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert not [process for process in processes if Path(f"/proc/{process}").exists()]
