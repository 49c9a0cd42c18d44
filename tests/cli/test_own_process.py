from __future__ import annotations

import subprocess
import sys

import pytest

COMMAND = "from lbr2pgo.__main__ import command; command()"
CODE = """
import os
from lbr2pgo.cli.own_process import prepare
prepare()
import numpy
print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"))
"""

FREED = """
from lbr2pgo.cli.own_process import give_back_memory
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
blocks = [bytes(50_000) for _ in range(1000)]
kept = [bytes(100), blocks.pop()]
del blocks
before = resident()
give_back_memory()
print(before - resident())
"""


def test_what_was_freed_below_what_is_kept_goes_back() -> None:
    given = int(subprocess.check_output([sys.executable, "-c", FREED], text=True))
    assert given > 40_000_000


def test_numpy_starts_no_threads_and_the_environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert subprocess.check_output([sys.executable, "-c", CODE], text=True) == "1 None\n"


def test_what_the_user_chose_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert subprocess.check_output([sys.executable, "-c", CODE], text=True) == "1 1\n"


@pytest.mark.parametrize("start", [("-m", "lbr2pgo"), ("-c", COMMAND)])
def test_the_command_passes_its_code_on(start: tuple[str, str]) -> None:
    command = [sys.executable, *start, "convert", "profile", "--binary", "/"]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 2
    assert b"profile: " in done.stderr
