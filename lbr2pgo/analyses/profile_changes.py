"""What is different between two written profiles of one kind: functions, and calls.

Functions are aligned by name; one that only one side has is looked for under what a name is in
every build (`base_name`), or under its hash, where one profile has hashes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from lbr2pgo.analyses.changes import base_name, changed
from lbr2pgo.analyses.confidence import for_all, wilson
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit, Value, build
from lbr2pgo.profiles.llvm.sample_names import guid
from lbr2pgo.profiles.weights import CallSite, ProfileWeights
from lbr2pgo.support.arrays import F64
from lbr2pgo.support.counted import counted
from lbr2pgo.support.dataclass import dataclass

FUNCTIONS, CALLS = "diff-functions", "diff-calls"

_FUNCTION = Column("function", "function", Unit.FUNCTION, FIGURE)
_CALL = (
    Column("caller", "caller", Unit.FUNCTION, FIGURE),
    Column("place", "at", Unit.TEXT, FIGURE),
    Column("callee", "callee", Unit.FUNCTION, FIGURE),
)


@dataclass(frozen=True, slots=True)
class Side:
    """One of both profiles, with the names that both go by."""

    functions: Mapping[str, int]
    calls: Mapping[CallSite, int]
    total: int
    """Counts of all functions."""
    samples: float | None
    """None: nothing of it is chance."""

    @classmethod
    def of(cls, weights: ProfileWeights, names: Mapping[str, str]) -> Side:
        """A profile, with some functions under other names."""
        functions: dict[str, int] = defaultdict(int)
        for name, count in weights.functions.items():
            functions[names.get(name, name)] += count
        calls: dict[CallSite, int] = defaultdict(int)
        for site, count in weights.calls.items():
            caller, callee = (names.get(name, name) for name in (site.caller, site.callee))
            calls[CallSite(caller, site.place, callee)] += count
        return cls(functions, calls, max(weights.total, 1), weights.samples)

    def shares(self, counts: Sequence[int], z: float) -> F64:
        """(3, n): shares of the total, with their bounds."""
        share = np.minimum(np.array(counts, np.float64) / self.total, 1.0)
        if self.samples is None:
            return np.stack([share] * 3)
        return np.stack([share, *wilson(share, self.samples, z)])


def profile_changes(
    new: ProfileWeights, old: ProfileWeights, top: int | None = None, *, everything: bool = False
) -> tuple[Table, Table]:
    """Tables of functions by how their share changed, and of calls gained and lost.

    What chance explains among all these rows is left out, or with `everything` marked so.
    """
    names = _common_names(old.functions, new.functions)
    before, after = Side.of(old, names), Side.of(new, names)
    functions = sorted(before.functions.keys() | after.functions.keys())
    calls = sorted((*_only(before, after), *_only(after, before)))
    z = for_all(len(functions) + len(calls))
    notes = () if before.samples is None else (_chance(before, after, len(functions) + len(calls)),)
    shares = [
        (side.shares([side.functions.get(name, 0) for name in functions], z),
         side.shares([side.calls.get(site, 0) for site in calls], z))
        for side in (after, before)
    ]  # fmt: skip
    return (
        _table(FUNCTIONS, "Functions, by how their share changed", shares[0][0], shares[1][0],
               [(_FUNCTION, functions)], notes, top, everything=everything),
        _table(CALLS, "Calls gained and lost, by their share", shares[0][1], shares[1][1],
               [*zip(_CALL, _parts(calls), strict=True)], (), top, everything=everything),
    )  # fmt: skip


def _only(one: Side, other: Side) -> Iterator[CallSite]:
    """Calls that ran on one side alone; those that only moved within their caller are none."""
    places: dict[tuple[str, str], list[CallSite]] = defaultdict(list)
    lost = Counter(
        (site.caller, site.callee)
        for site, count in other.calls.items()
        if count and not one.calls.get(site)
    )
    for site, count in one.calls.items():
        if count and not other.calls.get(site):
            places[site.caller, site.callee].append(site)
    for key, sites in places.items():
        yield from sorted(sites, key=lambda site: -one.calls[site])[lost[key] :]


def _parts(calls: Sequence[CallSite]) -> list[list[Value]]:
    return [[call[part] for call in calls] for part in range(3)]


def _chance(before: Side, after: Side, rows: int) -> str:
    samples = " and ".join(f"{side.samples or 0:,.0f}" for side in (before, after))
    return (
        f"Counts are taken for those of {samples} samples; what chance explains among "
        f"{counted(rows, 'row')} is left out."
    )


def _table(
    name: str, title: str, new: F64, old: F64, keys: Sequence[tuple[Column, Sequence[Value]]],
    notes: Sequence[str], top: int | None, *, everything: bool,
) -> Table:  # fmt: skip
    rows, (*shares, (sure, words)) = changed(new, old, None)
    moved = np.flatnonzero((new[0] != old[0])[rows]).tolist()
    kept = [i for i in moved if everything or words[i] == "yes"]
    columns = [*shares, (sure, words)] if everything else shares
    named = [(column, [values[i] for i in rows.tolist()]) for column, values in keys]
    shown = [(c, [values[i] for i in kept[:top]]) for c, values in (*columns, *named)]
    return build(name, title, shown, notes=notes, found=len(kept))


def _common_names(old: Iterable[str], new: Iterable[str]) -> dict[str, str]:
    """Names that one side alone has, and what stands for them: names rather than hashes."""
    before, after = set(old), set(new)
    is_hashed = any(name.isdigit() for name in before | after)
    sides = [_identities(only, is_hashed=is_hashed) for only in (before - after, after - before)]
    found: dict[str, str] = {}
    for identity, names in sides[0].items():
        others = sides[1].get(identity, [])
        if len(names) == len(others) == 1:
            (one,), (other,) = names, others
            found[one] = found[other] = one if other.isdigit() else other
    return found


def _identities(names: Iterable[str], *, is_hashed: bool) -> dict[str, list[str]]:
    """Names by what they have in common with those of other builds."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        hashed = name if name.isdigit() else str(guid(name))
        found[hashed if is_hashed else base_name(name)].append(name)
    return found
