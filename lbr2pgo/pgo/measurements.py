"""What several programs cost, as one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from statistics import median

import numpy as np

from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit
from lbr2pgo.pgo.comparison import changes
from lbr2pgo.pgo.measure import (
    Candidate,
    Measured,
    differing_outputs,
    front_end_of,
    measure,
)
from lbr2pgo.pgo.native_memory import MemoryState
from lbr2pgo.pgo.timing import BY_CHANCE, Rounds, is_short, outliers
from lbr2pgo.pgo.wants import WANTS, did_nothing
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.timings import Timings

_COUNTED = ("instructions", "taken", "mispredicted")
_COLUMNS = (
    Column("program", "program", Unit.TEXT, FIGURE),
    *(Column(name, name, Unit.COUNT) for name in _COUNTED),
    *(Column(f"{name}_ratio", f"{name} (ratio)", Unit.RATE, FIGURE) for name in _COUNTED),
    Column("code", "code (bytes)", Unit.COUNT),
    Column("hot_pages", "hot pages", Unit.COUNT),
    Column("seconds", "user time (s)", Unit.RATE),
    Column("time_ratio", "user time (ratio)", Unit.RATE, FIGURE),
    Column("time_low", "from", Unit.RATE),
    Column("time_high", "to", Unit.RATE),
    Column("p", "p", Unit.RATE),
    Column("resident_code", "resident code (bytes)", Unit.COUNT),
    Column("page_faults", "page faults", Unit.COUNT),
    Column("from_disk", "page faults from disk", Unit.COUNT),
    Column("cycles", "cycles (model)", Unit.CYCLES),
    Column("cycles_ratio", "cycles (model, ratio)", Unit.RATE),
)


@dataclass(frozen=True, slots=True)
class Measurements:
    """Programs that did the same work; ratios are to the first."""

    programs: tuple[Measured, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What makes them doubtful, a sentence each."""
        return tuple(measured_notes(self.programs))

    @property
    def changes(self) -> tuple[str, ...]:
        """What the others need beside the first, certainly or by chance, a sentence each."""
        return tuple(changes(self.programs))

    @property
    def table(self) -> Table:
        """A row each; `p` is how likely the times are if both programs are equally fast."""
        base = self.programs[0]
        rows = tuple(_row(each, base) for each in self.programs)
        return Table("measure", f"Costs beside {base.name}", _COLUMNS, rows, self.notes)

    def __repr__(self) -> str:
        return f"<Measurements of {', '.join(each.name for each in self.programs)}>"

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def _row(each: Measured, base: Measured) -> tuple[str | int | float | None, ...]:
    size, time = each.size, each.time_ratio(base)
    return (
        each.name,
        *(getattr(each.counted.totals, name) for name in _COUNTED),
        *each.count_ratios(base).values(),
        size and size.text,
        size and size.hot_pages,
        median(each.seconds.tolist()) if len(each.seconds) else None,
        *((time.median, time.low, time.high) if time else (None, None, None)),
        each.time_chance(base) if time and each is not base else None,
        *(astuple(each.memory) if each.memory else (None, None, None)),
        each.counted.front_end and each.counted.front_end.cycles,
        each.cycle_ratio(base),
    )


def measure_programs(
    binaries: Sequence[str],
    arguments: Sequence[str],
    runs: Rounds,
    source: Path | None,
    timings: Timings | None = None,
    model: str | None = None,
    memory: MemoryState | None = None,
) -> Measurements:
    """Run each with the same arguments and the same standard input (None: nothing).

    `model` names a front end that is simulated beside; "" is the usual one of the first program.
    `memory` says from which state native runs are looked at for what they have in memory.

    Raises as `measure.measure`, and InputError where no program is named.
    """
    option = next((name for name in binaries if name.startswith("-")), None)
    if option is not None or not binaries:
        raise InputError(
            f"{option} is no program" if option else "there is no program to measure",
            cure="Options come first: lbr2pgo measure --runs 20 ./before ./after -- arguments.",
        )
    candidates = [Candidate(name, (name, *arguments), input=source) for name in binaries]
    front_end = None if model is None else front_end_of(model, candidates[0])
    return Measurements(tuple(measure(candidates, runs, timings, front_end, memory)))


_NOISY = 0.05
"""Half the width of an interval of which nothing can be said."""
REPEATS = 0.001
"""Counts of two runs that differ by less are those of one that repeats itself."""
_WHOLE_RUN = 0.98
"""What perf, which cuts off what is behind the point, prints of it for two kinds of cores."""
FIXED_WORK = "give it fixed work (a number of rounds in place of a time, a seed)"
"""Clocks that count instructions are no cure: until a deadline every build would count the same."""


def _repeats(program: Measured) -> bool:
    return max(program.spread.values()) <= REPEATS


def measured_notes(measured: Sequence[Measured]) -> Iterator[str]:
    """Of programs that were measured together; the others are compared with the first."""
    first = measured[0]
    for name in differing_outputs(measured):
        yield f"{name} writes another output than {first.name}"
    nothing = did_nothing(first.counted.totals.instructions)
    if first.counted.exit_code:
        yield f"every run ended with exit code {first.counted.exit_code}: {WANTS}"
    elif nothing:
        yield f"{first.name} {nothing}"
    if not _repeats(first):
        spread = max(first.spread.values())
        yield (
            f"{first.name} does not repeat itself: counts of two runs differ by {spread:.1%} "
            "(time, deadlines, random numbers, threads?), so chance may make any differ by "
            f"{spread * BY_CHANCE:.0%}: {FIXED_WORK}"
        )
    if not first.repeats_output:
        yield f"{first.name} writes something else each time, so outputs are not compared"
    yield from _notes_on_time(measured)
    if first.uncounted:
        yield f"hardware counts nothing here: {first.uncounted}"
    shares = [count.share for each in measured for run in each.events for count in run.values()]
    if shares and min(shares) < _WHOLE_RUN:
        yield (
            f"hardware counters took turns: an event was counted in {min(shares):.0%} of a run, "
            "and the rest is extrapolated"
        )


def _notes_on_time(measured: Sequence[Measured]) -> Iterator[str]:
    first = measured[0]
    if is_short(first.seconds):
        yield (
            f"{first.name} takes {np.median(first.seconds) * 1000:.1f} ms, too short to tell: let "
            "one run repeat its work"
        )
    advice = (
        "judge by counts, or by cycles of a model (--model)"
        if _repeats(first)
        else "counts are no better, since these differ from run to run"
    )
    for each in measured:
        ratio = None if each is first else each.time_ratio(first)
        if ratio is not None and (ratio.high - ratio.low) / 2 > _NOISY:
            yield (
                f"the time of {each.name} is noise ({ratio.low:.2f} to {ratio.high:.2f} of the "
                f"first's): {advice}"
            )
        found = outliers(each.seconds)
        if found:
            yield (
                f"{found} of {len(each.seconds)} times of {each.name} are far off the others: was "
                "the machine busy?"
            )
