from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = "from lbr2pgo.__main__ import command; command()"
CODE = """
import os
from lbr2pgo.cli.own_process import prepare
prepare()
import numpy
print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"))
"""


def test_numpy_starts_no_threads_and_the_environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert subprocess.check_output([sys.executable, "-c", CODE], text=True) == "1 None\n"


def test_what_the_user_chose_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert subprocess.check_output([sys.executable, "-c", CODE], text=True) == "1 1\n"


LEAVING = """
import atexit, sys
from lbr2pgo.cli.own_process import leave
atexit.register(print, "tidied")
print("said")
sys.stderr.write("and complained")
leave(2)
"""


def test_leaving_loses_nothing(tmp_path: Path) -> None:
    """To a file, what is printed is kept back until there is enough of it."""
    with (tmp_path / "out").open("w+") as out:
        done = subprocess.run([sys.executable, "-c", LEAVING], stdout=out, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == b"and complained"
    assert (tmp_path / "out").read_text() == "said\ntidied\n"


@pytest.mark.parametrize("start", [("-m", "lbr2pgo"), ("-c", COMMAND)])
def test_the_command_passes_its_code_on(start: tuple[str, str]) -> None:
    command = [sys.executable, *start, "convert", "profile", "--binary", "/"]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 2
    assert b"it is no regular file" in done.stderr


def test_leaving_copes_with_closed_streams() -> None:
    code = "import os; from lbr2pgo.cli.own_process import leave; print(1); os.close(1); leave(0)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
