"""What is different between two recordings of a program, or of two builds of it.

Addresses move from build to build, so functions are aligned by name, and branches and lines by
function, file, line and, where a line has several branches, by their order in the code. Lines of a
function's own file count from its beginning, as in LLVM's profiles: what is above it may change.
Equal names of two images are two functions, and so are those of two source files in one image.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress

import numpy as np

from lbr2pgo.analyses import hot_functions, latency, mispredictions, outcomes
from lbr2pgo.analyses.confidence import difference, wilson
from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.latency import TimedRun
from lbr2pgo.analyses.table import DETAIL, FIGURE, Column, Table, Unit, Value, build
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.support.addresses import PlacedAddresses, placed_array, slot_of
from lbr2pgo.support.arrays import F64, I64
from lbr2pgo.support.dataclass import dataclass

_BUILD = re.compile(r"\.(?:llvm|__uniq)\.\d+")
"""Parts of names that hash a build's paths and contents."""

Function = tuple[str, str, str]
"""Library (empty for the program, whose name may change), name, and, where several functions of
the image have this name, source file."""
Place = tuple[Function, str, int, int]
"""Function, file, line and order among the branches of that line."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One recording of two, and how many independent observations its shares rest on."""

    evidence: Evidence
    samples: int

    def places(self, addresses: PlacedAddresses) -> list[Place]:
        """Where placed addresses are, in words that other builds have too."""
        return _places(self.evidence, addresses)


@dataclass(frozen=True, slots=True)
class _Shares:
    """Shares with their bounds, by what they are of; and which row of `what` says more."""

    share: Mapping[Place, tuple[float, float, float]]
    words: Mapping[Place, tuple[Value, Value]]
    """Function and source line, as they are shown."""


def base_name(function: str) -> str:
    """A function's name without what is only of one build.

    >>> base_name("f.llvm.123"), base_name("f.__uniq.45.cold")
    ('f', 'f.cold')
    """
    return _BUILD.sub("", function)


def _places(evidence: Evidence, addresses: PlacedAddresses) -> list[Place]:
    keys = dict(zip(addresses.tolist(), _lines(evidence, addresses), strict=True))
    code = evidence.flow.instructions
    branches = code.address[code.kind != Kind.OTHER]
    order: dict[int, int] = {}
    seen: Counter[tuple[Function, str, int]] = Counter()
    wanted = set(keys.values())
    for address, line in zip(branches.tolist(), _lines(evidence, branches), strict=True):
        if line in wanted:
            order[address] = seen[line]
            seen[line] += 1
    return [(*keys[address], order.get(address, 0)) for address in addresses.tolist()]


def _functions_at(evidence: Evidence, roots: I64) -> list[Function]:
    """What each function (n,), by its region, is called in other builds too."""
    starts = evidence.program.regions.start[roots]
    libraries, shared = _libraries(evidence, starts), evidence.once(_shared_names)
    names = [base_name(evidence.names.region(row)) for row in roots.tolist()]
    lines = evidence.names.raw_lines(starts)
    files = [lines.files[i] if i >= 0 else "" for i in lines.file.tolist()]
    return [
        (library, name, file if (library, name) in shared else "")
        for library, name, file in zip(libraries, names, files, strict=True)
    ]


def _shared_names(evidence: Evidence) -> frozenset[tuple[str, str]]:
    """Libraries and names that more than one of their functions has."""
    regions = evidence.program.regions
    roots = np.unique(regions.parent)
    libraries = _libraries(evidence, regions.start[roots])
    named = [(row, base_name(regions.label(row))) for row in roots.tolist()]
    uses = Counter(
        (library, name) for library, (_, name) in zip(libraries, named, strict=True) if name
    )
    return frozenset(name for name, count in uses.items() if count > 1)


def _libraries(evidence: Evidence, addresses: PlacedAddresses) -> list[str]:
    """Of each address, without the version; empty for the program."""
    files = evidence.names.files(addresses) or [None] * len(addresses)
    return [
        (file or "").partition(".so")[0] if slot_of(address) else ""
        for address, file in zip(addresses.tolist(), files, strict=True)
    ]


def _lines(evidence: Evidence, addresses: PlacedAddresses) -> list[tuple[Function, str, int]]:
    """Function, file and line, in the function's own file from its first line on."""
    regions = evidence.program.regions
    region = regions.parent[regions.containing(addresses)]
    start = evidence.names.raw_lines(regions.start[region])
    line = evidence.names.raw_lines(addresses)
    roots = np.unique(region)
    names = dict(zip(roots.tolist(), _functions_at(evidence, roots), strict=True))
    file = [line.files[i] if i >= 0 else "" for i in line.file.tolist()]
    own = [start.files[i] if i >= 0 else "" for i in start.file.tolist()]
    return [
        (names[row], path, at - first if path == home and at else at)
        for row, path, home, at, first in zip(
            region.tolist(), file, own, line.line.tolist(), start.line.tolist(), strict=True
        )
    ]


def changes(new: Compared, old: Compared, top: int | None = TOP) -> tuple[Table, ...]:
    """Tables of what changed: what is more than chance first, then by how much."""
    shares = {
        ("functions", "Functions, by share of the instructions"): _functions,
        ("lines", "Source lines, by share of the instructions"): _source_lines,
        ("layout", "Layout of functions, by taken share of their branches"): _layout,
        ("outcomes", "Branches, by taken share"): _outcomes,
        ("mispredictions", "Branches, by mispredicted share"): _misses,
    }
    tables = (_table(*words, each, new, old, top) for words, each in shares.items())
    return (*tables, _latency(new, old, top))


def _table(
    name: str, title: str, shares: Callable[[Compared], _Shares],
    new: Compared, old: Compared, top: int | None,
) -> Table:  # fmt: skip
    after, before = shares(new), shares(old)
    both = [key for key in after.share if key in before.share]
    rows, columns = changed(_matrix(after, both), _matrix(before, both), top)
    words = [after.words[both[row]] for row in rows.tolist()]
    return build(
        f"changes-{name}",
        f"{title}: changes",
        [
            *columns,
            (
                Column("function", "function", Unit.FUNCTION, FIGURE),
                [function for function, _ in words],
            ),
            (Column("line", "source line", Unit.LOCATION, FIGURE), [line for _, line in words]),
        ],
        notes=_unmatched(len(after.share) - len(both), len(before.share) - len(both)),
        found=len(both),
    )


def _matrix(shares: _Shares, keys: Sequence[Place]) -> F64:
    """(3, n): share, low, high."""
    return np.array([shares.share[key] for key in keys], np.float64).reshape(-1, 3).T


def changed(new: F64, old: F64, top: int | None) -> tuple[I64, list[tuple[Column, list[Value]]]]:
    """The rows that changed most, surely ones first, and columns of their shares and change.

    `new` and `old` are (3, n): shares with their bounds.
    """
    change = new[0] - old[0]
    low, high = difference(new[0], (new[1], new[2]), old[0], (old[1], old[2]))
    sure = (low > 0) | (high < 0)
    rows = np.lexsort((-np.abs(change), ~sure))[:top]
    shares = (
        ("old", "old", FIGURE, old[0]),
        ("new", "new", FIGURE, new[0]),
        ("change", "change", FIGURE, change),
        ("change_low", "at least", DETAIL, low),
        ("change_high", "at most", DETAIL, high),
    )
    columns: list[tuple[Column, list[Value]]] = [
        (Column(name, title, Unit.SHARE, priority), values[rows].tolist())
        for name, title, priority, values in shares
    ]
    words: list[Value] = ["yes" if each else "no" for each in sure[rows].tolist()]
    return rows, [*columns, (Column("sure", "more than chance", Unit.TEXT, FIGURE), words)]


def _unmatched(new: int, old: int) -> tuple[str, ...]:
    notes = ["Bounds of changes hold in 95 of 100 cases (Newcombe); of many rows, some are chance."]
    if new or old:
        notes.append(f"{new:,} are in the new recording only, and {old:,} in the old one only.")
    return tuple(notes)


def _functions(side: Compared) -> _Shares:
    table = hot_functions.hot_functions(side.evidence, None)
    known = [row is not None for row in table.column("instructions_share")]
    rows = list(compress(table.records(), known))
    share = np.array([row["instructions_share"] for row in rows], np.float64)
    starts = placed_array(int(a or 0) for a in compress(table.placed_column("address"), known))
    functions = side.evidence.program.regions.containing(starts)
    return _by_function(side, functions, rows, share, np.full(len(rows), float(side.samples)))


def _source_lines(side: Compared) -> _Shares:
    flow = side.evidence.flow
    ran = np.flatnonzero(flow.executed > 0)
    addresses = flow.instructions.address[ran]
    keys = [(*line, 0) for line in _lines(side.evidence, addresses)]
    unique = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    group = np.array([unique[key] for key in keys], np.int64)
    executed = np.bincount(group, flow.executed[ran], len(unique))
    share = executed / max(float(executed.sum()), 1.0)
    first = addresses[np.unique(group, return_index=True)[1]]
    named = side.evidence.names.of(first)
    words = dict(zip(unique, zip(named.function, named.line, strict=True), strict=True))
    bounds = wilson(share, side.samples)
    return _Shares(_keyed(unique, share, bounds), words)


def _layout(side: Compared) -> _Shares:
    found = outcomes.estimate(side.evidence)
    regions = side.evidence.program.regions
    region = regions.parent[regions.containing(found.address)]
    functions, group = np.unique(region, return_inverse=True)
    taken = np.bincount(group.reshape(-1), found.taken, len(functions))
    count = np.bincount(group.reshape(-1), found.count, len(functions))
    names = (side.evidence.names.region(row) for row in functions.tolist())
    lines = side.evidence.names.lines(regions.start[functions])
    rows = [{"function": name, "line": line} for name, line in zip(names, lines, strict=True)]
    # One sample of a function tells of about as many branches as a stack holds, all alike.
    effective = np.minimum(count, side.samples * count / max(count.sum(), 1))
    return _by_function(side, functions, rows, taken / np.maximum(count, 1), effective)


def _by_function(
    side: Compared, functions: I64, rows: Sequence[Mapping[str, Value]], share: F64,
    observations: F64,
) -> _Shares:  # fmt: skip
    bounds = wilson(share, observations)
    keys = [(name, "", 0, 0) for name in _functions_at(side.evidence, functions)]
    words = {key: (row["function"], row["line"]) for key, row in zip(keys, rows, strict=True)}
    return _Shares(_keyed(keys, share, bounds), words)


def _keyed(
    keys: Iterable[Place], share: F64, bounds: tuple[F64, F64]
) -> dict[Place, tuple[float, float, float]]:
    columns = (column.tolist() for column in (share, *bounds))
    return {key: values for key, *values in zip(keys, *columns, strict=True)}  # type: ignore[misc]


def _outcomes(side: Compared) -> _Shares:
    found = outcomes.estimate(side.evidence)
    keys = side.places(found.address)
    named = side.evidence.names.of(found.address)
    words = dict(zip(keys, zip(named.function, named.line, strict=True), strict=True))
    return _Shares(_keyed(keys, found.probability, (found.low, found.high)), words)


def _misses(side: Compared) -> _Shares:
    tables = {t.name: t for t in mispredictions.mispredictions(side.evidence, None)}
    table = tables[mispredictions.NAME]
    known = [rate is not None for rate in table.column("rate")]
    rows = list(compress(table.records(), known))
    address = placed_array(int(a or 0) for a in compress(table.placed_column("address"), known))
    is_code = side.evidence.flow.instructions.index_of(address) >= 0
    rows = [row for row, known in zip(rows, is_code.tolist(), strict=True) if known]
    keys = side.places(address[is_code])
    columns = [
        np.array([row[name] for row in rows], np.float64)
        for name in ("rate", "rate_low", "rate_high")
    ]
    words = {key: (row["function"], row["line"]) for key, row in zip(keys, rows, strict=True)}
    return _Shares(_keyed(keys, columns[0], (columns[1], columns[2])), words)


def timed_pairs(
    new: Compared, old: Compared, timed: Callable[[Evidence, int | None], list[TimedRun]],
    top: int | None,
) -> list[tuple[TimedRun, TimedRun]]:  # fmt: skip
    """Blocks, or loops, that both recordings timed, in the order of the new one."""
    before = dict(reversed(_timed(old, timed(old.evidence, None))))  # of equal places the hottest
    runs = dict(reversed(_timed(new, timed(new.evidence, None))))
    pairs = [(run, before[key]) for key, run in reversed(runs.items()) if key in before]
    return pairs[:top]


def _timed(side: Compared, runs: Sequence[TimedRun]) -> list[tuple[tuple[Place, Place], TimedRun]]:
    starts = side.places(np.array([run.start for run in runs], np.uint64))
    ends = side.places(np.array([run.end for run in runs], np.uint64))
    return list(zip(zip(starts, ends, strict=True), runs, strict=True))


def _latency(new: Compared, old: Compared, top: int | None) -> Table:
    pairs = timed_pairs(new, old, latency.timed_blocks, top)
    after, before = ([pair[side].times for pair in pairs] for side in (0, 1))
    places = new.evidence.names.of(np.array([run.start for run, _ in pairs], np.uint64))
    columns: list[tuple[Column, Sequence[Value]]] = []
    for name, times in (("old", before), ("new", after)):
        mean = Column(
            f"{name}_mean", f"{name} trimmed mean", Unit.CYCLES, FIGURE, of_processor=True
        )
        modes = Column(f"{name}_modes", f"{name} modes", Unit.TEXT, FIGURE, of_processor=True)
        columns.append((mean, [each.trimmed_mean for each in times]))
        columns.append((modes, [each.told for each in times]))
    columns.append((Column("function", "function", Unit.FUNCTION, FIGURE), places.function))
    columns.append((Column("line", "source line", Unit.LOCATION, FIGURE), places.line))
    return build("changes-latency", "Cycles of blocks: changes", columns)
