"""Figures of programs that `fresh.py` judges builds by, as they are kept and as they are told."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean, mean, stdev

import numpy as np
from which_profile import INSTRUMENTED, PLAIN

from lbr2pgo.pgo.results import share_saved
from lbr2pgo.pgo.timing import Interval, median_interval, sign_test
from lbr2pgo.support.arrays import F64

SAMPLED = "sampled"
BUILDS = (PLAIN, INSTRUMENTED, SAMPLED)
COUNTS = "instructions", "taken"
OTHERS = PLAIN, INSTRUMENTED
HEADINGS = (
    "program", "counters save", "pgo's share: instructions", "taken branches",
    ".text beside -O2", "beside counters", "user time beside -O2", "beside counters",
)  # fmt: skip
_SURE = 0.05
"""Below such a chance, one of two builds is faster."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a build costs on one input."""

    instructions: int
    taken: int
    seconds: Sequence[float]
    """User time of each round, if it was timed."""
    hot_pages: int = 0
    """See `CodeSize`; 0 in figures that were kept before there were any."""


@dataclass(frozen=True, slots=True)
class Time:
    """A build's user time beside another's: of rounds, each the geometric mean over the inputs."""

    ratio: Interval
    chance: float
    """Of so many rounds on one side, if both builds are equally fast."""

    @property
    def is_sure(self) -> bool:
        """Whether one is faster."""
        return self.chance < _SURE


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one program."""

    program: str
    text: dict[str, int]
    """Bytes of code of each build."""
    runs: Sequence[dict[str, Run]]
    """Of each judging input, by build."""

    def cost(self, build: str, of: str, beside: str = PLAIN) -> float:
        """Of instructions, taken branches or hot pages, those of another build as 1."""
        return geometric_mean(getattr(run[build], of) / getattr(run[beside], of)
                              for run in self.runs)  # fmt: skip

    def share(self, of: str) -> float | None:
        """What pgo has of what counters take away; None where that is less than a hundredth."""
        return share_saved(1, self.cost(INSTRUMENTED, of), self.cost(SAMPLED, of))

    def size(self, beside: str, build: str = SAMPLED) -> float:
        """Of a build's code, beside that of another one."""
        return self.text[build] / self.text[beside]

    def are_timed(self, builds: Sequence[str]) -> bool:
        """Whether they have times."""
        return all(run[build].seconds for run in self.runs for build in builds)

    def time(self, beside: str, build: str = SAMPLED) -> Time | None:
        """Of a build beside another one; None if they are not timed."""
        if not self.are_timed((beside, build)):
            return None
        ratios = [np.array(run[build].seconds) / run[beside].seconds for run in self.runs]
        rounds: F64 = np.exp(np.mean(np.log(ratios), axis=0))
        return Time(median_interval(rounds), sign_test(rounds))

    def keep(self, file: Path) -> None:
        """Write them, for `loaded`."""
        file.write_text(json.dumps(asdict(self), indent=1))


def loaded(file: Path) -> Figures:
    """Figures that were kept."""
    told = json.loads(file.read_text())
    runs = [{build: Run(**run) for build, run in runs.items()} for runs in told["runs"]]
    return Figures(told["program"], told["text"], runs)


def rows(found: Sequence[Figures]) -> Iterator[list[str]]:
    """Cells of the table, a row a program; last the means, and the worst."""
    for each in found:
        saved = " / ".join(f"{1 - each.cost(INSTRUMENTED, of):.1%}" for of in COUNTS)
        shares = [percent(each.share(of)) for of in COUNTS]
        sizes = [f"{each.size(other):.3f}" for other in OTHERS]
        yield [each.program, saved, *shares, *sizes, *(interval(each.time(of)) for of in OTHERS)]
    shares = [summary([each.share(of) for each in found]) for of in COUNTS]
    sizes = [worst([each.size(other) for each in found]) for other in OTHERS]
    times = [summary_of_times([each.time(other) for each in found]) for other in OTHERS]
    yield ["mean ± deviation (lowest share, highest ratio) of n", "", *shares, *sizes, *times]


def left(found: Sequence[Figures]) -> str:
    """What counters and pgo leave of the plain builds' instructions and taken branches."""
    told = []
    for name, build in (("counters", INSTRUMENTED), ("pgo", SAMPLED)):
        costs = [[each.cost(build, of) for each in found] for of in COUNTS]
        spreads = [f" ± {stdev(each):.3f}" if len(each) > 1 else "" for each in costs]
        means = [f"{mean(each):.3f}{spread}" for each, spread in zip(costs, spreads, strict=True)]
        told.append(f"{name} {' / '.join(means)}")
    return f"Left of -O2's instructions / taken branches, of {len(found)}: {', '.join(told)}."


def percent(share: float | None) -> str:
    """A share, or that there is none."""
    return "-" if share is None else f"{share:.0%}"


def interval(time: Time | None) -> str:
    """A median, where the true one is and how likely chance alone is, if there is one."""
    if time is None:
        return "-"
    ratio = time.ratio
    return f"{ratio.median:.3f} ({ratio.low:.3f} to {ratio.high:.3f}), p = {time.chance:.2g}"


def summary(shares: Sequence[float | None]) -> str:
    """The mean, the standard deviation and the lowest of those that there are."""
    known = [share for share in shares if share is not None]
    if not known:
        return "-"
    spread = f" ± {stdev(known):.0%}" if len(known) > 1 else ""
    return f"{mean(known):.0%}{spread} ({min(known):.0%}) of {len(known)}"


def worst(ratios: Sequence[float]) -> str:
    """The geometric mean and the highest of those that there are."""
    if not ratios:
        return "-"
    return f"{geometric_mean(ratios):.3f} ({max(ratios):.3f}) of {len(ratios)}"


def summary_of_times(times: Sequence[Time | None]) -> str:
    """The same, and how many are surely faster or slower."""
    known = [time for time in times if time is not None]
    medians = [time.ratio.median for time in known]
    sure = [time.ratio.median for time in known if time.is_sure]
    faster, slower = sum(each < 1 for each in sure), sum(each > 1 for each in sure)
    return worst(medians) + (f", {faster} faster, {slower} slower" if known else "")


def print_table(table: Sequence[Sequence[str]]) -> None:
    """As Markdown, the headings first."""
    for row in (table[0], ["---"] * len(table[0]), *table[1:]):
        print(f"| {' | '.join(row)} |")
