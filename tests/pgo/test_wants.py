"""Programs that want a terminal, in training and where they are measured."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lbr2pgo.pgo.measure import Candidate, measure
from lbr2pgo.pgo.measurements import measured_notes
from lbr2pgo.pgo.timing import NOT_TIMED
from lbr2pgo.pgo.trainer import count_in_program
from lbr2pgo.pgo.training import Training, record
from lbr2pgo.support.errors import InputError

WORKS_ON_A_TERMINAL = """
#include <unistd.h>
int main(int argc, char **argv) {
  if (!isatty(0)) return argc > 1;
  volatile unsigned h = 1;
  for (int i = 0; i < 1000000; i++) h = h * 7 + i;
}
"""
WANTED = "does it want arguments, input (lbr2pgo … < FILE) or a terminal"


@pytest.fixture
def program(tmp_path: Path, tool: Callable[[str], str]) -> Path:
    """Without a terminal it ends at once, with 1 if it has an argument."""
    tool("qemu-x86_64")
    (tmp_path / "works.c").write_text(WORKS_ON_A_TERMINAL)
    built = tmp_path / "works"
    subprocess.run([tool("cc"), "-O1", tmp_path / "works.c", "-o", built], check=True)
    return built


def trained(program: Path, command: str, source: Path | None = Path("/dev/null")) -> list[str]:
    said: list[str] = []
    training = Training((command,), None, emulate=True, input=source)
    record(training, command, program.parent / "perf.data", said.append)
    return [line for line in said if "Warning: It " in line]


def test_a_failed_training_says_what_it_read_and_may_want(program: Path) -> None:
    with pytest.raises(InputError) as caught:
        trained(program, f"{program} fail")
    assert caught.value.cure is not None
    assert caught.value.cure.startswith(f"Its standard input was /dev/null: {WANTED} (script -qec")
    assert caught.value.cure.endswith("if that is how the program ends, give --any-status.")


def test_counters_in_the_program_are_no_different(program: Path) -> None:
    with pytest.raises(InputError) as caught:
        count_in_program(
            Training((f"{program} fail",), None, emulate=True), program.parent / "raw", print
        )
    assert caught.value.cure is not None
    assert caught.value.cure.startswith(f"Its standard input was empty: {WANTED}")


def test_a_training_that_does_nothing_is_warned_of(program: Path) -> None:
    (warning,) = trained(program, f"{program}")
    assert re.match(r"   Warning: It ran only [\d,]+ instructions, hardly more than", warning)
    assert WANTED in warning


def test_a_terminal_is_given_as_it_is_said(program: Path, tool: Callable[[str], str]) -> None:
    tool("script")
    assert trained(program, f"script -qec {shlex.quote(f'{program} fail')} /dev/null") == []


@pytest.mark.parametrize(("arguments", "said"), [((), "hardly more"), (("fail",), "exit code 1")])
def test_where_it_is_measured_it_is_noted(
    program: Path, arguments: tuple[str, ...], said: str
) -> None:
    measured = measure([Candidate("works", (str(program), *arguments))], NOT_TIMED)
    (note,) = measured_notes(measured)
    assert said in note
    assert WANTED in note


def test_a_training_without_input_reads_nothing_where_this_process_has_a_terminal(
    program: Path,
) -> None:
    ends, own = os.openpty(), os.dup(0)
    os.dup2(ends[1], 0)
    try:
        with pytest.raises(InputError, match="exit code 1") as caught:
            trained(program, f"{program} fail", None)
    finally:
        os.dup2(own, 0)
        for end in (*ends, own):
            os.close(end)
    assert caught.value.cure is not None
    assert caught.value.cure.startswith(f"Its standard input was empty: {WANTED}")
