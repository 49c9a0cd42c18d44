"""Why one build of a program costs less than another: what each did in the same run, compared.

Everything is counted, nothing is estimated: instructions by the function they were written in, and
taken branches by what a compiler does to them. Inlining takes calls and returns away, promotion
turns calls through pointers into others, layout makes jumps fall through.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from lbr2pgo.analyses.costs import Costs, Pair
from lbr2pgo.analyses.evidence import TOP
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit, Value, build
from lbr2pgo.model.exact_counts import Totals
from lbr2pgo.support.dataclass import dataclass

K = TypeVar("K", bound=Hashable)

OTHER_FILES = "[other files]"
_STATIC = re.compile(r"_ZL([0-9]{1,4})(\w+)")
"""Itanium C++ ABI, 5.1: the length of a name, the name and its parameters' types."""
_NO_REMARKS = (
    "What the compiler says of these calls is not known: build with --remarks to have it kept."
)


@dataclass(frozen=True, slots=True)
class ExplainedBuild:
    """What is known of one of the two."""

    name: str
    totals: Totals
    costs: Costs
    remarks: Mapping[Pair, str]
    """What the compiler said of inlining the callee, may be empty."""


def explain(a: ExplainedBuild, b: ExplainedBuild, top: int | None = TOP) -> tuple[Table, ...]:
    """Tables of what makes the difference, its largest parts first."""
    a, b = _by_names_of(a, b), _by_names_of(b, a)
    return (
        _causes(a, b),
        _functions(a, b, top),
        _calls(a, b, top),
        _promoted(a, b, top),
        _layout(a, b, top),
    )


def _by_names_of(build: ExplainedBuild, other: ExplainedBuild) -> ExplainedBuild:
    """A build with static functions of C by the names that the other has, if only that has them.

    Where a build has pseudo probes, clang mangles these as C++ does, to make them unique.
    """
    own, others = build.costs.functions, other.costs.functions
    unlike = {name: plain for name in own - others if (plain := _plain_name(name)) is not None}
    names = {name: plain for name, plain in unlike.items() if plain in others - own}
    said = {(names.get(f, f), names.get(by, by)): text for (f, by), text in build.remarks.items()}
    return replace(build, costs=build.costs.renamed(names), remarks=said)


def _plain_name(function: str) -> str | None:
    """What C calls a static function that clang has mangled; None for any other.

    >>> _plain_name("_ZL5twicei"), _plain_name("_ZL5twice"), _plain_name("_ZN1a5twiceEi")
    ('twice', None, None)
    """
    match = _STATIC.fullmatch(function)
    if match is None:
        return None
    name, parameters = match[2][: int(match[1])], match[2][int(match[1]) :]
    return name if parameters else None


def _causes(a: ExplainedBuild, b: ExplainedBuild) -> Table:
    """Taken branches by what a compiler can do to them; the rows make up the whole difference."""
    rows = Counter(_by_cause(a)), Counter(_by_cause(b))
    return _compared(
        "explain-causes", "Taken branches, by what takes them away", "cause", Unit.TEXT,
        rows, _saved_taken(a, b), None,
    )  # fmt: skip


def _by_cause(build: ExplainedBuild) -> dict[str, int]:
    costs = build.costs
    parts = {
        "calls and returns (inlining)": costs.calls.total() + costs.returns.total(),
        "calls through pointers (promotion)": costs.indirect_calls.total(),
        "jumps between blocks (layout)": costs.jumps.total(),
    }
    return {**parts, OTHER_FILES: build.totals.taken - sum(parts.values())}


def _functions(a: ExplainedBuild, b: ExplainedBuild, top: int | None) -> Table:
    rows = _with_rest(a), _with_rest(b)
    return _compared(
        "explain-functions", "Instructions, by the function they were written in", "function",
        Unit.FUNCTION, rows, _saved(a, b, lambda totals: totals.instructions), top,
    )  # fmt: skip


def _with_rest(build: ExplainedBuild) -> Counter[str]:
    inside = build.costs.instructions
    return Counter({**inside, OTHER_FILES: build.totals.instructions - inside.total()})


def _calls(a: ExplainedBuild, b: ExplainedBuild, top: int | None) -> Table:
    """Pairs whose calls became other: those that were inlined, and those that no longer are."""
    table = _compared(
        "explain-calls", "Calls and returns, by what was inlined into what", "function",
        Unit.FUNCTION, (_both_ways(a), _both_ways(b)), _saved_taken(a, b), top, are_pairs=True,
    )  # fmt: skip
    pairs = list(zip(table.column("function"), table.column("caller"), strict=True))
    columns: list[tuple[Column, Sequence[Value]]] = [
        (column, table.column(column.name)) for column in table.columns
    ]
    for which, each in (("a", a), ("b", b)):
        said = Column(f"remark_{which}", f"compiler, of {which.upper()}", Unit.TEXT)
        columns.append((said, [each.remarks.get((str(f), str(by))) for f, by in pairs]))
    notes = () if a.remarks or b.remarks else (_NO_REMARKS,)
    return build(table.name, table.title, columns, notes=notes, found=table.found)


def _both_ways(build: ExplainedBuild) -> Counter[Pair]:
    return build.costs.calls + build.costs.returns


def _promoted(a: ExplainedBuild, b: ExplainedBuild, top: int | None) -> Table:
    pairs = a.costs.indirect_calls, b.costs.indirect_calls
    return _compared(
        "explain-promoted", "Calls through pointers, by what was promoted", "function",
        Unit.FUNCTION, pairs, _saved_taken(a, b), top, are_pairs=True,
    )  # fmt: skip


def _layout(a: ExplainedBuild, b: ExplainedBuild, top: int | None) -> Table:
    return _compared(
        "explain-layout", "Taken jumps between blocks, by function", "function", Unit.FUNCTION,
        (a.costs.jumps, b.costs.jumps), _saved_taken(a, b), top,
    )  # fmt: skip


def _saved_taken(a: ExplainedBuild, b: ExplainedBuild) -> int:
    return _saved(a, b, lambda totals: totals.taken)


def _saved(a: ExplainedBuild, b: ExplainedBuild, of: Callable[[Totals], int]) -> int:
    return of(a.totals) - of(b.totals)


def _compared(
    name: str, title: str, key_name: str, unit: Unit, counts: tuple[Counter[K], Counter[K]],
    whole: int, top: int | None, *, are_pairs: bool = False,
) -> Table:  # fmt: skip
    """One row a key that differs: how often in A and in B, and which share of all B saves there.

    Keys are words, or pairs of a function and its caller (`are_pairs`).
    """
    first, second = counts
    saved = {key: first[key] - second[key] for key in first.keys() | second.keys()}
    keys = sorted((key for key in saved if saved[key]), key=lambda k: (-abs(saved[k]), str(k)))
    shown = keys[:top]
    columns: list[tuple[Column, list[Value]]] = [
        (Column("share", "of the difference", Unit.SHARE, FIGURE),
         [saved[key] / whole if whole else None for key in shown]),
        (Column("saved", "fewer in B", Unit.COUNT, FIGURE), [saved[key] for key in shown]),
        (Column("a", "A", Unit.COUNT), [first[key] for key in shown]),
        (Column("b", "B", Unit.COUNT), [second[key] for key in shown]),
        (Column(key_name, key_name, unit), [_words(key)[0] for key in shown]),
    ]  # fmt: skip
    if are_pairs:
        callers: list[Value] = [_words(key)[1] for key in shown]
        columns.append((Column("caller", "called by", Unit.FUNCTION), callers))
    return build(name, title, columns, found=len(keys))


def _words(key: Hashable) -> tuple[str, ...]:
    return key if isinstance(key, tuple) else (str(key),)
