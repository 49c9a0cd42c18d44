"""`lbr2pgo pgo --search` as a user runs it; what it finds is tests/pgo/test_search.py's."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from builders.goals import BUILD_SHRUNK, write_shrunk
from builders.searches import COST, options
from builders.ticks import FOR_ANOTHER_TIME

from lbr2pgo.cli.search import _how, seconds
from lbr2pgo.pgo.kinds import ProfileKind
from lbr2pgo.pgo.search import Search

SOURCE = Path(__file__).parents[2] / "testbins" / "src" / "interp.c"


@pytest.fixture(autouse=True)
def _leaves_nothing(nothing_is_left, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_a_table_names_every_kind_and_the_verdict_what_to_keep(command, tool):
    tool("clang-22"), tool("qemu-x86_64"), tool("llvm-profdata-22")
    answer = command(
        "pgo", "--search", "--build", f"clang-22 $CFLAGS {SOURCE} -o app $LDFLAGS", "--binary",
        "app", "--train", "./app 1", "--test", "./app 2", "-c", "1009", "--runs", "0", "--emulate",
        "--instrumented", "--confirm", "./app 3",
    )  # fmt: skip
    assert answer.code == 0
    header, *rows = answer.out.splitlines()
    assert header.split() == ["profile", "instructions", "taken", "branches", "cycles", "code"]
    names = [row.split()[0] for row in rows]
    verdict = next(i for i, name in enumerate(names) if name in ("Verdict:", "Warning:"))
    assert {"plain", "lines", "probes", "contexts"} <= set(names[:verdict])
    costs = [float(row.split()[3]) for row in rows[:verdict]]
    assert costs == sorted(costs)
    config = Path("app.lbr2pgo/best.cfg").absolute()
    assert f"Keep {config}: with --config={config}, clang has all of its flags." in rows
    assert os.access("app", os.X_OK)
    assert "instrumented" in names[:verdict]
    confirmed = (
        "On what had no part in the choice \\(./app 3\\): 0[.][0-9]+ of the instructions, .*"
    )
    assert any(re.fullmatch(confirmed, row) for row in rows)
    with_it = r"With ./app 3 it needs .* fewer taken branches than the plain build; not timed.*"
    assert any(re.fullmatch(with_it, row) for row in rows)
    beside = re.compile(r"It saves .*\d+% of the taken branches that instrumented saves[.]")
    assert any(map(beside.fullmatch, rows))


def test_without_a_training_command_it_says_what_to_give(command):
    answer = command("pgo", "--search", "--build", "true", "--binary", "app")
    assert answer.code == 2
    assert "there is no training command" in answer.err


@pytest.mark.parametrize(("text", "value"), [("90", 90), ("90s", 90), ("20m", 1200), ("2h", 7200)])
def test_times_have_units(text, value):
    assert seconds(text) == value


def test_what_is_no_time_is_told_as_such(command):
    answer = command("pgo", "--search", "--budget", "20x")
    assert answer.code == 2
    assert "argument --budget: not a time: 20x (90s, 20m or 2h)" in answer.err


def test_the_simplest_of_what_hardly_differs_is_not_said_to_cost_least():
    kind, rival = ProfileKind("lines"), ProfileKind("probes")
    search = Search(options(), print, print)
    search.ranking.kinds = {each.name: each for each in (kind, rival)}
    search.results.costs = {
        name: {"./app 2": replace(COST, cycles=cycles)}
        for name, cycles in (("plain", 2e6), ("lines", 1.0001e6), ("probes", 1e6))
    }
    assert search.ranking.best() == kind
    assert _how(search, kind) == "is the simplest of what costs least within 0.1%"
    assert _how(search, rival) == "costs least"


def test_a_time_without_a_number_is_refused(command):
    answer = command("pgo", "--search", "--budget", "soon")
    assert answer.code == 2
    assert "--budget" in answer.err


@pytest.mark.slow
def test_what_would_help_where_nothing_can_be_trained_or_compared_is_said_once(command, tool):
    tool("clang-22"), tool("qemu-x86_64")
    Path("app.c").write_text(FOR_ANOTHER_TIME)
    answer = command(
        "pgo", "--search", "--build", "clang-22 $CFLAGS app.c -o app $LDFLAGS", "--binary", "app",
        "--train", "test -t 0", "--test", "./app", "--runs", "0", "--emulate",
    )  # fmt: skip
    assert answer.code == 0
    assert ": test -t 0: the training run failed with exit code 1\n" in answer.out
    assert answer.out.count("Left out: ") > 1
    assert answer.out.count("or a terminal (script -qec 'CMD' /dev/null)?") == 1
    assert "count as the same: give it fixed work (a number of rounds in place of" in answer.out


MISLED = """
#include <stdio.h>
static unsigned letter(unsigned h) { h ^= h >> 3; h *= 7; h ^= h << 5; return h + 1; }
static unsigned digit(unsigned h) { h ^= h << 7; h *= 9; h ^= h >> 9; return h - 1; }
int main(int argc, char **argv) {
  unsigned h = 1;
  for (int i = 0; i < 20000; i++)
    h = argv[1][i % 8] > '9' ? letter(h) : digit(h);
  printf("%u\\n", h);
}
"""


@pytest.mark.slow
def test_a_training_that_is_not_like_the_tests_is_warned_of(command, tool):
    tool("clang-22"), tool("qemu-x86_64")
    Path("app.c").write_text(MISLED)
    answer = command(
        "pgo", "--search", "--build", "clang-22 $CFLAGS app.c -o app $LDFLAGS", "--binary", "app",
        "--train", "./app letters.", "--test", "./app 12345678", "--runs", "0", "--emulate",
    )  # fmt: skip
    assert answer.code == 0
    (warning,) = (line for line in answer.out.splitlines() if line.startswith("Warning: "))
    found = re.fullmatch(
        r"Warning: by the training alone (\S+) would win, and cost ([0-9.]+)% more in the tests: "
        "is the training like what the program is used for[?]", warning,
    )  # fmt: skip
    assert found is not None
    assert found[1] != "plain"
    assert float(found[2]) > 1
    assert "Verdict: no profile is better than none." in answer.out


@pytest.mark.slow
def test_for_size_the_smallest_wins_though_it_saves_no_cycles(command, tool):
    tool("clang-22"), tool("qemu-x86_64"), tool("llvm-profdata-22")
    write_shrunk()
    answer = command(
        "pgo", "--search", "--build", BUILD_SHRUNK, "--binary", "app", "--train", "./app 20",
        "--test", "./app 10", "-c", "1009", "--runs", "0", "--emulate", "--for", "size",
    )  # fmt: skip
    assert answer.code == 0
    _, *rows = (line.split() for line in answer.out.splitlines())
    ends = next(number for number, row in enumerate(rows) if len(row) != 5)
    figures = {name: (float(cycles), float(code)) for name, _, _, cycles, code in rows[:ends]}
    (winner,) = re.findall(r"^Verdict: (\S+) costs least", answer.out, re.MULTILINE)
    cycles, code = figures[winner]
    assert cycles > 0.999  # so for speed no profile would be better
    assert code == min(code for _, code in figures.values()) < 0.8
    assert figures["plain"] == (1, 1)
    assert re.search(r"^The same alone: .* --for size ", answer.out, re.MULTILINE)
    assert "--symbol-list" in Path(f"app.lbr2pgo/{winner}/app.commands.sh").read_text()
