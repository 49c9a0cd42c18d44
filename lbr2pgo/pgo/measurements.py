"""What several programs cost, as one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit
from lbr2pgo.pgo.measure import Candidate, Measured, measure
from lbr2pgo.pgo.measured_notes import measured_notes
from lbr2pgo.pgo.timing import Rounds
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
    )


def measure_programs(
    binaries: Sequence[str],
    arguments: Sequence[str],
    runs: Rounds,
    source: Path | None,
    timings: Timings | None = None,
) -> Measurements:
    """Run each with the same arguments and the same standard input (None: nothing).

    Raises as `measure.measure`, and InputError where no program is named.
    """
    option = next((name for name in binaries if name.startswith("-")), None)
    if option is not None or not binaries:
        raise InputError(
            f"{option} is no program" if option else "there is no program to measure",
            cure="Options come first: lbr2pgo measure --runs 20 ./before ./after -- arguments.",
        )
    candidates = [Candidate(name, (name, *arguments), input=source) for name in binaries]
    return Measurements(tuple(measure(candidates, runs, timings)))
