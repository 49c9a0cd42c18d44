"""Errors that come of too little memory, in the words of those who raise them."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys

import pytest

from lbr2pgo.support.shortage import expect_room, shortage_of


def led_to(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


MAPPING = "libm.so.6: failed to map segment from shared object"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        OSError(MAPPING),
        RuntimeError("can't start new thread"),
        led_to(ImportError("Importing the C-extensions failed"), ImportError(MAPPING)),
    ],
)
def test_each_way_to_say_that_memory_is_short_is_understood(error: Exception) -> None:
    shortage = shortage_of(error)
    assert shortage is not None
    assert shortage.what.startswith("out of memory")
    assert shortage.exit_code == 2
    assert "ulimit -v" in (shortage.cure or "")


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("no"), KeyError("key")]
)
def test_other_errors_are_no_shortage(error: Exception) -> None:
    assert shortage_of(error) is None


def test_room_is_missed_before_libraries_are_loaded() -> None:
    expect_room()
    code = "from lbr2pgo.support.shortage import expect_room; expect_room()"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (80 << 20, 80 << 20))

    done = subprocess.run([sys.executable, "-c", code], preexec_fn=limit, capture_output=True)
    assert done.returncode == 1
    assert done.stderr.endswith(b"MemoryError\n")
