from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lbr2pgo.recorders.foreground import Ending, run_foreground

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_the_end_of_a_command_is_told_as_popen_does() -> None:
    assert run_foreground(["sh", "-c", "exit 3"], os.environ) == 3
    assert run_foreground(["sh", "-c", "kill -9 $$"], os.environ) == -9


def test_a_command_reads_and_prints_where_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("given\n")
    with (tmp_path / "out").open("wb") as output:
        environment = {**os.environ, "NAME": "x"}
        command = ["sh", "-c", "cat; echo $NAME"]
        run_foreground(command, environment, output, source=tmp_path / "in")
    assert (tmp_path / "out").read_text() == "given\nx\n"


def test_a_command_that_is_ended_in_time_has_done_well() -> None:
    assert run_foreground(SLEEP, os.environ, ending=Ending(0.05, signal.SIGTERM)) == 0
    ends = ["sh", "-c", "trap 'exit 5' TERM; while :; do sleep 0.01; done"]
    assert run_foreground(ends, os.environ, ending=Ending(0.5, signal.SIGTERM)) == 5


def test_a_command_ends_when_it_is_due_and_what_it_began_with_it(tmp_path: Path) -> None:
    mark, ended = tmp_path / "mark", tmp_path / "ended"
    child = f"trap 'echo > {ended}; exit' TERM; echo > {mark}; while :; do sleep 0.01; done"
    begun = ["sh", "-c", f"({child}) & echo $! > {tmp_path}/child; wait"]

    def others() -> list[int]:
        return [int((tmp_path / "child").read_text())]

    before = time.monotonic()
    assert run_foreground(begun, os.environ, ending=Ending(60, 15, mark.exists, others)) == 0
    while not ended.exists() and time.monotonic() < before + 30:
        time.sleep(0.01)
    assert ended.exists()


def test_a_command_that_ends_before_has_its_own_code() -> None:
    assert run_foreground(["sh", "-c", "exit 4"], os.environ, ending=Ending(30, 15)) == 4


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_ends_this_process_is_passed_on_and_handlers_come_back(number: int) -> None:
    before = signal.getsignal(number)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), number))
    timer.start()
    assert run_foreground(SLEEP, os.environ) == -number
    timer.join()
    assert signal.getsignal(number) is before


def test_the_suite_runs_under_nohup_too(tmp_path: Path) -> None:
    """Which ignores hangups; tests send them to this process, and to what they start."""
    tests = [__file__, str(Path(__file__).parents[1] / "cli" / "test_main.py")]
    chosen = "passed_on or (swallows and in_python)"
    options = ["-q", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "inner"), "-k", chosen]
    suite = [sys.executable, "-m", "pytest", *options, *tests]
    ignores = ["/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh", *suite]
    done = subprocess.run(ignores, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout
