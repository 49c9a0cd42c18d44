from __future__ import annotations

import time
from pathlib import Path

import pytest

from lbr2pgo.pgo.limited import run_limited
from lbr2pgo.support.errors import InputError


def test_a_command_runs_in_its_folder_and_what_it_prints_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = run_limited(["sh", "-c", "pwd; echo no >&2; exit 3"], tmp_path, log, None)
    assert code == 3
    assert log.read_text() == f"{tmp_path}\nno\n"


def test_after_its_time_it_is_ended_with_what_it_started(tmp_path: Path) -> None:
    log, child = tmp_path / "log", tmp_path / "child"
    began = time.monotonic()
    with pytest.raises(InputError, match="the budget was spent"):
        run_limited(["sh", "-c", f"sleep 60 & echo $! > {child}; wait"], tmp_path, log, 0.5)
    assert time.monotonic() - began < 30
    wait_for_end(int(child.read_text()))


def wait_for_end(process: int) -> None:
    """Fails if it lives on; what is killed may need a moment."""
    stat = Path(f"/proc/{process}/stat")
    for _ in range(100):
        if not stat.exists() or stat.read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError("it goes on")


def test_no_time_left_is_no_time(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the budget was spent"):
        run_limited(["sleep", "60"], tmp_path, tmp_path / "log", -1.0)


def test_it_reads_what_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("given")
    assert run_limited(["cat"], tmp_path, tmp_path / "log", None, tmp_path / "in") == 0
    assert (tmp_path / "log").read_text() == "given"
