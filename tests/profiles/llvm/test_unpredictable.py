"""Hints of branches that can't be predicted, beside what the emulator's own predictor did."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
from builders.fixtures import Run, Tool
from builders.recordings import PIE, RECORDING

import lbr2pgo
from lbr2pgo.cli import main
from lbr2pgo.model.branch_stacks import BRANCH_TYPES
from lbr2pgo.model.exact_counts import ExactCounts
from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.profiles.llvm import text
from lbr2pgo.profiles.registry import read_written
from lbr2pgo.program.program import Program
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software
from lbr2pgo.support.errors import InputError, OutputError

SOURCE = """\
#include <stdint.h>
static uint64_t state = 88172645463325252u;
static volatile uint64_t product = 1, sum;
#define ALONE __attribute__((noinline)) static void
#define INLINED __attribute__((always_inline)) static inline void

INLINED toss(uint64_t percent) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    if (state % 100 < percent)
        product *= 3;
    else
        sum += 3;
}
ALONE half(void) { toss(50); }
ALONE third(void) { toss(33); }
ALONE seldom(uint64_t percent) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    if (state % 100 < percent)
        product *= 3;
    else
        sum += 3;
}
int main(void) {
    for (int i = 0; i < 30000; i++)
        half(), third(), seldom(3);
}
"""
TOSSED = 9
"""The line of the dice."""
CONDITIONAL = BRANCH_TYPES.index("COND")


class Outcomes(NamedTuple):
    """Of one branch, by the emulator's own predictor."""

    taken: int
    taken_missed: int
    fell: int
    fell_missed: int

    @property
    def rate(self) -> float:
        return (self.taken_missed + self.fell_missed) / (self.taken + self.fell)

    def presumed(self) -> int:
        """What can be said of it by what is known where it was taken."""
        right = 1 - self.taken_missed / self.taken
        return round(self.taken_missed + min(self.taken_missed, self.fell * right))


@dataclass(frozen=True)
class Tossed:
    """A program and its recordings."""

    program: Path
    samples: Path
    exact: Path

    def truth(self, function: str) -> Outcomes:
        """Of the only conditional branch of a function."""
        counts, symbols = ExactCounts.load(self.exact), Program.open(self.program).symbols
        row, image = symbols.by_name(function), counts.find_image(None, str(self.program))
        assert row is not None
        start, end = int(symbols.start[row]), int(symbols.end[row])
        inside = (counts.from_image == image) & (counts.kind == CONDITIONAL)
        inside &= (counts.from_ >= start) & (counts.from_ < end)
        assert len(set(counts.from_[inside].tolist())) == 1
        return Outcomes(*(
            int(column[inside & (counts.taken == taken)].sum())
            for taken in (True, False)
            for column in (counts.count, counts.mispredicted)
        ))  # fmt: skip


@pytest.fixture(scope="module")
def tossed(tmp_path_factory: pytest.TempPathFactory, tool: Tool, run: Run) -> Tossed:
    tool("qemu-x86_64")
    where = tmp_path_factory.mktemp("tossed")
    program, source = where / "program", where / "tossed.c"
    source.write_text(SOURCE)
    flags = "-O2", "-g", "-fdebug-info-for-profiling", "-fno-unroll-loops"
    run(tool("clang-22"), *flags, source, "-o", program)
    found = Tossed(program, where / "perf.data", where / "exact.npz")
    outputs = {"output": found.samples, "exact": found.exact}
    record_software(RecordOptions(command=(str(program),), period=101, emulate=True, **outputs))
    return found


def hints(recording: Path, program: Path, out: Path, **options: int) -> list[list[str]]:
    """The rows of what is written: place, function, executions, mispredictions, rate."""
    lbr2pgo.convert([recording], program, unpredictable=out, **options)
    _, *rows = (line for line in out.read_text().splitlines() if line.startswith("#"))
    return [row.removeprefix("# ").split("\t") for row in rows]


def test_dice_are_named_by_how_often_they_were_missed(tossed: Tossed, tmp_path: Path) -> None:
    half, third = tossed.truth("half"), tossed.truth("third")
    (row,) = hints(tossed.exact, tossed.program, tmp_path / "hints")
    assert row[0].endswith(f"/tossed.c:{TOSSED}")
    assert row[1:4] == ["toss", "60000", str(half.presumed() + third.presumed())]
    assert row[4] == f"{int(row[3]) / 60_000:.3f}"
    assert 0.45 < half.rate < 0.55
    assert half.presumed() == pytest.approx(half.rate * 30_000, rel=0.05)


def test_what_is_seldom_missed_is_named_when_asked_for(tossed: Tossed, tmp_path: Path) -> None:
    seldom, out = tossed.truth("seldom"), tmp_path / "hints"
    assert 0.01 < seldom.rate < 0.06
    rows = hints(tossed.exact, tossed.program, out, unpredictable_rate=0)
    assert rows[0][1] == "toss"
    assert [row[2:4] for row in rows if row[1] == "seldom"] == [["30000", str(seldom.presumed())]]
    with pytest.raises(EmptyProfileError, match="lower --unpredictable-rate"):
        hints(tossed.exact, tossed.program, out, unpredictable_rate=60)


def test_samples_tell_the_same(tossed: Tossed, tmp_path: Path) -> None:
    (exact,) = hints(tossed.exact, tossed.program, tmp_path / "exact")
    (sampled,) = hints(tossed.samples, tossed.program, tmp_path / "sampled")
    assert sampled[:2] == exact[:2]
    assert float(sampled[4]) == pytest.approx(float(exact[4]), abs=0.03)


def test_llvm_reads_mispredictions_where_its_profile_has_executions(
    tossed: Tossed, tmp_path: Path, tool: Tool, run: Run
) -> None:
    """As the loader of pull request 99027 looks both up, in what is inlined too."""
    out, again, executions = (tmp_path / name for name in ("hints", "again", "prof"))
    hints(tossed.exact, tossed.program, out)
    lbr2pgo.convert([tossed.exact], tossed.program, llvm=executions)
    run(tool("llvm-profdata-22"), "merge", "--sample", "--text", out, "-o", again)
    missed, ran = text.read(again), text.read(executions)
    assert set(missed.functions) == {"half", "third"}
    for name, function in missed.functions.items():
        ((call, inlined),) = function.callsites.items()
        ((place, count),) = inlined["toss"].body.items()
        assert count == function.total == tossed.truth(name).presumed()
        assert ran.functions[name].callsites[call]["toss"].body[place] == 30_000


def test_what_is_written_is_not_taken_for_executions(tossed: Tossed, tmp_path: Path) -> None:
    hints(tossed.exact, tossed.program, tmp_path / "hints")
    with pytest.raises(InputError, match="is of a format that is only written"):
        read_written(tmp_path / "hints")


def test_recordings_that_can_t_tell_say_so(tmp_path: Path) -> None:
    """Ranges and branches have no mispredictions, and branches of one kind no ranges."""
    silent, out = tmp_path / "silent", tmp_path / "hints"
    lbr2pgo.convert([RECORDING], PIE, unsymbolized=silent)
    with pytest.raises(OutputError, match="does not say which branches were mispredicted"):
        hints(silent, PIE, out)
    assert main(["convert", str(silent), "--binary", str(PIE), "--unpredictable", str(out)]) == 2
    assert not out.exists()


def test_a_program_without_lines_is_refused(tossed: Tossed, tmp_path: Path, run: Run) -> None:
    bare = tmp_path / "program"
    run("llvm-strip-22", "--strip-debug", tossed.program, "-o", bare)
    with pytest.raises(OutputError, match=r"no hints were written: .* has no debug information"):
        hints(tossed.exact, bare, tmp_path / "hints")
