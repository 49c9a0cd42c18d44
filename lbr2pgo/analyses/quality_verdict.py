"""A profile's measures as a verdict in words, for people who set no gates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from lbr2pgo.analyses.quality import Quality
from lbr2pgo.profiles.staleness import MOST_MISSING, MOST_STALE, Misfit, Staleness
from lbr2pgo.support.dataclass import dataclass

_LITTLE_CHANCE, _MUCH_CHANCE = 0.05, 0.2
_WELL_KEPT, _POORLY_KEPT = 0.95, 0.6
_ALIKE, _UNLIKE = 0.65, 0.5
_UNBIASED, _BIASED = 0.02, 0.1
_MOST_OF_IT, _TOO_LITTLE = 0.9, 0.65


class Grade(Enum):
    """How good something is."""

    GOOD = "good"
    FAIR = "usable"
    BAD = "of little use"
    OTHER_BUILD = "another build's profile"
    OTHER_ARCHITECTURE = "another architecture's profile"
    OTHER_PROGRAM = "another program's profile"

    @property
    def is_worth_using(self) -> bool:
        """Whether something is to be made of the profile."""
        return self in (Grade.GOOD, Grade.FAIR)

    @property
    def is_wrong(self) -> bool:
        """Whether the profile does not belong to the program."""
        return self in _WRONG.values()


_WRONG = {
    Misfit.BUILD: Grade.OTHER_BUILD,
    Misfit.NAMES: Grade.OTHER_BUILD,
    Misfit.ARCHITECTURE: Grade.OTHER_ARCHITECTURE,
    Misfit.PROGRAM: Grade.OTHER_PROGRAM,
}


@dataclass(frozen=True, slots=True)
class Remark:
    """One measure, judged."""

    grade: Grade
    text: str
    cure: str = ""
    """What would make it better."""


_UNPLACED = Remark(
    Grade.FAIR,
    "nobody can tell how well it fits the program, which lacks symbols or debug information",
    "Give the program as it was linked, or its debug file.",
)


def weakest(remarks: Sequence[Remark]) -> Remark | None:
    """What is worst of a profile, the first of several; None where there is nothing to say."""
    order = list(Grade)
    return max(remarks, key=lambda remark: order.index(remark.grade), default=None)


def whole(remarks: Sequence[Remark]) -> Grade:
    """The verdict on a profile: that on its weakest side."""
    remark = weakest(remarks)
    return Grade.BAD if remark is None else remark.grade


@dataclass(frozen=True, slots=True)
class Bounds:
    """Shares of counts from which on a profile does not belong to the program."""

    most_stale: float = MOST_STALE
    missing: float = MOST_MISSING
    """In functions that the program lacks: with more, it is another program's."""
    fitting: float = 0.1
    stale: float = 0.3
    """More is of little use: for each line without a place, others have moved to another's."""


def remarks(quality: Quality, bounds: Bounds) -> Iterator[Remark]:
    """What can be said of a profile.

    Coverage plays no part: of the lines of a hot function those that handle what is rare have no
    counts in the best of profiles.
    """
    if quality.density == 0:
        yield Remark(Grade.BAD, "no line of code has a count", "Take more samples of all branches.")
    if quality.chance is not None:
        yield _chance(quality.chance)
    if quality.conservation is not None:
        grade = _at_least(quality.conservation, _WELL_KEPT, _POORLY_KEPT)
        text = f"{quality.conservation:.1%} of the flow leaves each block as often as it enters it"
        yield Remark(grade, text, "Take more samples, or a recorder that keeps more branches.")
    if quality.executed is not None:
        yield _executed(quality.executed)
    if quality.bias is not None:
        yield _bias(quality.bias)
    yield from _placed(quality, bounds)
    if quality.overlap is not None:
        grade = _at_least(quality.overlap.similarity, _ALIKE, _UNLIKE)
        text = f"{quality.overlap.similarity:.0%} like the other profile"
        yield Remark(grade, text, "See which load changed: the program may do something else now.")


def _at_least(value: float, good: float, fair: float) -> Grade:
    return Grade.GOOD if value >= good else Grade.FAIR if value >= fair else Grade.BAD


def _chance(share: float) -> Remark:
    text = f"at least {share:.1%} of its counts stand elsewhere by chance"
    cure = f"Take {(share / _LITTLE_CHANCE) ** 2:,.1f} times as many samples."
    return Remark(_at_least(-share, -_LITTLE_CHANCE, -_MUCH_CHANCE), text, cure)


def _executed(share: float) -> Remark:
    text = f"{share:.1%} of what the program executes is in functions of the profile"
    cure = "A layout by it can slow down the rest: record all that the program is used for."
    return Remark(_at_least(share, _MOST_OF_IT, _TOO_LITTLE), text, cure)


def _bias(share: float) -> Remark:
    if share <= _UNBIASED:
        return Remark(Grade.GOOD, "the ends of stacks hold the branches that they should")
    text = f"{share:.1%} of the entries at one end of stacks belong to other branches"
    cure = "Correct it: --correct-bias (report --only stack-ends says which branches they are)."
    return Remark(Grade.FAIR if share <= _BIASED else Grade.BAD, text, cure)


def _placed(quality: Quality, bounds: Bounds) -> Iterator[Remark]:
    if quality.stale is not None:
        yield _stale(quality.stale, bounds)
    elif quality.chance is not None:
        yield _UNPLACED


def _stale(stale: Staleness, bounds: Bounds) -> Remark:
    misfit = stale.misfit(bounds.missing, bounds.most_stale)
    if misfit is not None:
        return Remark(_WRONG[misfit], stale.reason(misfit, "the program"), misfit.cure)
    if stale.lost == 0:
        return Remark(Grade.GOOD, "all its counts have a place in the program")
    grade = _at_least(-stale.lost, -bounds.fitting, -bounds.stale)
    text = f"{stale.share:.2%} of its counts have no place in the program"
    if stale.alone > stale.share:
        text += f", and llvm-bolt leaves functions with {stale.alone:.2%} of them alone"
    return Remark(grade, text, "Record the program as it is now.")
