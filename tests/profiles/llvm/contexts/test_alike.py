from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from builders.context_profiles import as_text, inlined, line_contexts
from builders.fixtures import Walk

from lbr2pgo.profiles.llvm.contexts._preinliner import SHOULD_BE_INLINED
from lbr2pgo.profiles.llvm.contexts.alike import MOST_LOCATIONS, RARE, with_alike_apart
from lbr2pgo.profiles.llvm.contexts.context_profile import ContextProfile
from lbr2pgo.profiles.llvm.contexts.nesting import nested
from lbr2pgo.profiles.llvm.profile_table import Body, CallTargets, Contexts, ProfileTable

Row = tuple[int, int, list[int]]


def made(*rows: Row) -> ContextProfile:
    """Contexts: the parent, which calls at line 1, the name's number, counts of lines 1, 2 …"""
    parents, names, counts = zip(*rows, strict=True)
    parent, size = np.array(parents), np.array([len(each) for each in counts])
    line = np.array([line for each in counts for line in range(1, len(each) + 1)])
    none = np.empty(0, np.int64)
    table = ProfileTable(
        tuple(f"f{number}" for number in range(max(names) + 1)),
        Contexts(
            parent, np.where(parent >= 0, 1, 0), np.zeros_like(parent), np.array(names),
            np.array([sum(each) for each in counts], np.uint64), np.zeros(len(rows), np.uint64),
        ),
        Body(
            np.repeat(np.arange(len(rows)), size), line, np.zeros_like(line),
            np.array([count for each in counts for count in each], np.uint64),
        ),
        CallTargets(none, none, none.astype(np.uint64)),
    )  # fmt: skip
    attributes = np.full(len(rows), SHOULD_BE_INLINED, np.uint8)
    return ContextProfile(table, np.ones(len(rows), np.bool_), attributes)


def called_from_two(*copies: list[int]) -> ContextProfile:
    """f0 and f1 call f2; what its two copies count."""
    return made((-1, 0, [400]), (-1, 1, [400]), (0, 2, copies[0]), (1, 2, copies[1]))


def standing(profile: ContextProfile) -> list[str]:
    """The functions that stand alone."""
    text = as_text(nested(with_alike_apart(profile)))
    return sorted(line.partition(":")[0] for line in text.splitlines() if line[0] != " ")


def test_copies_that_run_alike_are_called_and_their_function_has_all_counts() -> None:
    text = as_text(nested(with_alike_apart(called_from_two([400, 200], [100, 50]))))
    assert "f2:750:0\n 1: 500\n 2: 250\n" in text
    assert "f0:400:0\n 1: 400 f2:400\n" in text
    assert "f1:400:0\n 1: 400 f2:100\n" in text


@pytest.mark.parametrize(
    ("copies", "stay"),
    [
        (([400, 200], [100, 50]), False),
        (([400, 400], [100, 0]), True),  # each goes another way
        (([400, 200], [400, 340]), True),
        (([400, 200], [400, 230]), False),  # within a twentieth and chance
        (([400, 200], [2, 2]), False),  # nothing that two calls could tell
        (([400] * MOST_LOCATIONS, [100] * MOST_LOCATIONS), False),
        (([400] * (MOST_LOCATIONS + 1), [100] * (MOST_LOCATIONS + 1)), True),
        (([400] + [0] * MOST_LOCATIONS, [100] + [0] * MOST_LOCATIONS), False),  # these did not run
    ],
)
def test_what_differs_or_is_large_stays_in_its_callers(
    copies: tuple[list[int], list[int]], stay: bool
) -> None:
    assert standing(called_from_two(*copies)) == ["f0", "f1"] + ([] if stay else ["f2"])


@pytest.mark.parametrize(("inner", "stay"), [([400, 400], True), ([400, 200], False)])
def test_what_has_another_one_of_its_own_inlined_into_it_stays(
    inner: list[int], stay: bool
) -> None:
    profile = made((-1, 0, [400]), (0, 1, [400]), (1, 2, inner), (-1, 1, [400]), (3, 2, [400, 200]),
                   (-1, 2, [4000, 2000]))  # fmt: skip
    text = as_text(nested(with_alike_apart(profile)))
    assert (" 1: f1:" in text) == (" 1: f2:" in text) == stay
    assert (" 1: 400 f1:400" in text) == (not stay)


def test_what_is_called_through_one_pointer_here_and_there_tells_copies_apart() -> None:
    """f2 calls f3 in f0, and f4 in f1; the helpers run alike."""
    rows = [(-1, 0, [400]), (-1, 1, [400]), (0, 2, [400]), (1, 2, [400])]
    assert standing(made(*rows, (2, 3, [400]), (3, 3, [400]))) == ["f0", "f1", "f2", "f3"]
    assert standing(made(*rows, (2, 3, [400]), (3, 4, [400]))) == ["f0", "f1", "f3", "f4"]


@pytest.mark.parametrize(("calls", "stay"), [(0, False), (4, False), (5, True)])
def test_what_calls_more_than_rarely_stays(calls: int, stay: bool) -> None:
    """f2 is entered 400 times by f0, and 400 by f1; it calls f3 from line 2."""
    profile = called_from_two([400, 4], [400, 4])
    assert RARE * 400 == 4
    row, callee = np.array([3, 5]), np.array([3, 3])
    called = CallTargets(row, callee, np.full(2, calls, np.uint64))
    names = (*profile.table.names, "f3")
    profile = replace(profile, table=replace(profile.table, names=names, calls=called))
    assert ("f2" in standing(profile)) == (not stay)


Place = tuple[int, int]
Calls = dict[tuple[Place, int], int]


class Plain:
    """Which contexts are to stand apart, found plainly."""

    def __init__(self, profile: ContextProfile) -> None:
        self.contexts = c = profile.table.contexts
        body = profile.table.body
        self.known = set(np.flatnonzero(profile.has_samples).tolist())
        self.lines = defaultdict[int, dict[Place, int]](dict)
        columns = body.context, body.line, body.discriminator, body.count
        for n, line, discriminator, count in zip(*(x.tolist() for x in columns), strict=True):
            self.lines[n][line, discriminator] = count
        self.calls = defaultdict[int, Calls](dict)
        for (n, line, discriminator, callee), count in calls_of(profile.table).items():
            self.calls[n][(line, discriminator), callee] = count
        self.entered = defaultdict[int, int](int)
        self.of_all = defaultdict[int, dict[object, int]](lambda: defaultdict(int))
        for n in self.known:
            self.entered[int(c.name[n])] += self.entries(n)
            for place, count in self.places(n).items():
                self.of_all[int(c.name[n])][place] += count

    def entries(self, n: int) -> int:
        lines = self.lines[n]
        return max(int(self.contexts.head[n]), lines[min(lines)] if lines else 0)

    def call(self, n: int) -> tuple[Place, int]:
        """Of a context by its caller."""
        c = self.contexts
        return (int(c.line[n]), int(c.discriminator[n])), int(c.name[n])

    def places(self, n: int) -> dict[object, int]:
        """Counts of lines and calls, those of what is inlined included."""
        calls, lines = Counter(self.calls[n]), Counter(self.lines[n])
        for m in self.inner(n):
            calls[self.call(m)] = max(calls[self.call(m)], self.entries(m))
        called = Counter[Place]()
        for (place, _), count in calls.items():
            called[place] += count
        return {**(lines | called), **calls}

    def is_like_all(self, n: int) -> bool:
        name, calls, own = int(self.contexts.name[n]), self.entries(n), self.places(n)
        if not calls:
            return False
        for place, count in self.of_all[name].items():
            expected = count / self.entered[name]
            chance = sqrt(max(expected, 1 / self.entered[name]) / calls)
            if abs(own.get(place, 0) / calls - expected) > 0.05 * max(expected, 1) + 2 * chance:
                return False
        return True

    def is_inlined(self, n: int) -> bool:
        return n in self.known and int(self.contexts.parent[n]) in self.known

    def inner(self, n: int) -> list[int]:
        return [*filter(self.is_inlined, np.flatnonzero(self.contexts.parent == n).tolist())]

    def size(self, n: int) -> int:
        return sum(map(bool, self.lines[n].values())) + sum(map(self.size, self.inner(n)))

    def calls_others(self, n: int) -> bool:
        nested, rare = set(map(self.call, self.inner(n))), RARE * self.entries(n)
        return any(count > rare and call not in nested for call, count in self.calls[n].items())

    def is_apart(self, n: int) -> bool:
        return (self.is_inlined(n) and self.is_like_all(n) and not self.calls_others(n)
                and self.size(n) <= MOST_LOCATIONS
                and all(map(self.is_apart, self.inner(n))))  # fmt: skip


def calls_of(table: ProfileTable) -> dict[tuple[int, int, int, int], int]:
    b, t = table.body, table.calls
    columns = (b.context[t.row], b.line[t.row], b.discriminator[t.row], t.callee, t.count)
    return {(a, b, c, d): n for a, b, c, d, n in zip(*(x.tolist() for x in columns), strict=True)}


def test_random_programs_are_parted_as_a_plain_search_parts_them(walk: Walk) -> None:
    parted = kept = 0
    for seed in range(12):
        profile = inlined(line_contexts(*walk(seed)), as_llvm=False)
        plain = Plain(profile)
        expected = set(filter(plain.is_apart, range(len(profile.table.contexts))))
        found = with_alike_apart(profile)
        before, after = profile.table.contexts, found.table.contexts
        assert set(np.flatnonzero(before.parent != after.parent).tolist()) == expected
        assert not found.attributes[sorted(expected)].any()
        old, new = calls_of(profile.table), calls_of(found.table)
        assert all(new[call] >= count for call, count in old.items())
        for n in expected:
            call = (before.parent[n], before.line[n], before.discriminator[n], before.name[n])
            assert new[tuple(map(int, call))] >= max(old.get(call, 0), plain.entries(n))
        parted += len(expected)
        kept += int((after.parent >= 0).sum())
    assert parted > 5
    assert kept > 5
