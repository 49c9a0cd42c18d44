"""The rows of functions against what their definitions say, place by place."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lbr2pgo.profiles.llvm._function_rows import (
    CallColumns,
    CodeColumns,
    FunctionRows,
    PlaceColumns,
    ScopeColumns,
)
from lbr2pgo.support.intervals import offsets_of

LARGEST = 2**64 - 1
NAMES, NO_CALLER = 5, ()

Location = tuple[int, int]
Frame = tuple[Location, int]
"""Where in its parent a function was inlined, and its name."""
Path = tuple[Frame, ...]


class Program:
    """Places of functions that are inlined into each other, some of them more than once."""

    def __init__(self, rng: random.Random, largest: int) -> None:
        self.paths: list[Path] = []
        self.parent: list[int] = []
        for _ in range(rng.randrange(1, 30)):
            parent = rng.randrange(-1, len(self.paths))
            outer = self.paths[parent] if parent >= 0 else NO_CALLER
            location = self._location(rng) if outer else (0, 0)
            self.parent.append(parent)
            self.paths.append((*outer, (location, rng.randrange(NAMES))))
        self.places = [
            (rng.randrange(-1, len(self.paths)), self._location(rng), rng.randrange(1, 4))
            for _ in range(rng.randrange(60))
        ]
        self.code = [
            [
                (rng.randrange(largest + 1), rng.randrange(1, 16), rng.random() < 0.8)
                for _ in range(rng.randrange(1, 4))
            ]
            for _ in self.places
        ]
        self.calls = [
            [(rng.randrange(NAMES), rng.randrange(100)) for _ in range(rng.randrange(3))]
            for _ in self.places
        ]

    @staticmethod
    def _location(rng: random.Random) -> Location:
        return rng.randrange(3), rng.randrange(2)

    def loops(self) -> FunctionRows:
        location = [path[-1][0] for path in self.paths]
        code = [each for place in self.code for each in place]
        calls = [each for place in self.calls for each in place]
        return FunctionRows(
            ScopeColumns(
                np.array(self.parent, np.int64),
                np.array([path[-1][1] for path in self.paths], np.int32),
                np.array([line for line, _ in location], np.uint32),
                np.array([discriminator for _, discriminator in location], np.uint32),
            ),
            PlaceColumns(
                np.array([scope for scope, *_ in self.places], np.int32),
                np.array([line for _, (line, _), _ in self.places], np.uint32),
                np.array([discriminator for _, (_, discriminator), _ in self.places], np.uint32),
                np.array([factor for *_, factor in self.places], np.uint64),
                offsets_of([len(each) for each in self.code]),
                offsets_of([len(each) for each in self.calls]),
            ),
            CodeColumns(
                np.array([count for count, *_ in code], np.uint64),
                np.array([size for _, size, _ in code], np.uint8),
                np.array([is_body for *_, is_body in code], np.uint8),
            ),
            CallColumns(
                np.array([callee for callee, _ in calls], np.int64),
                np.array([count for _, count in calls], np.uint64),
            ),
            NAMES,
        )

    def totals(self) -> dict[Path, int]:
        found = dict.fromkeys(self.paths, 0)
        for (scope, *_), code in zip(self.places, self.code, strict=True):
            weight = sum(count * size for count, size, _ in code)
            path = self.paths[scope] if scope >= 0 else NO_CALLER
            for depth in range(1, len(path) + 1):
                found[path[:depth]] += weight
        return {path: min(total, LARGEST) for path, total in found.items()}

    def body(self) -> dict[tuple[Path, Location], int]:
        found: dict[tuple[Path, Location], int] = {}
        for (scope, location, factor), code, calls in zip(
            self.places, self.code, self.calls, strict=True
        ):
            counts = [min(LARGEST, count * factor) for count, *_ in code]
            is_body = any(is_body for *_, is_body in code)
            if scope >= 0 and (is_body or calls):
                key = self.paths[scope], location
                found[key] = max(found.get(key, 0), *(counts if is_body else [0]), 0)
        return found

    def called(self) -> dict[tuple[Path, Location, int], int]:
        found: dict[tuple[Path, Location, int], int] = {}
        for (scope, location, _), calls in zip(self.places, self.calls, strict=True):
            for callee, count in calls if scope >= 0 else ():
                key = self.paths[scope], location, callee
                found[key] = found.get(key, 0) + count
        return found


@pytest.mark.parametrize("largest", [100, LARGEST])
@pytest.mark.parametrize("seed", range(20))
def test_rows_are_what_their_definitions_say(seed: int, largest: int) -> None:
    program = Program(random.Random(seed), largest)
    loops = program.loops()
    totals: dict[Path, int] = {}
    body: dict[tuple[Path, Location], int] = {}
    called: dict[tuple[Path, Location, int], int] = {}
    for contexts, rows, calls in map(loops.of, loops.pieces(7)):
        paths: list[Path] = []
        for parent, line, discriminator, name, total in contexts.tolist():
            paths.append((*(paths[parent] if parent >= 0 else ()), ((line, discriminator), name)))
            assert paths[-1] not in totals
            totals[paths[-1]] = total
        places = [(paths[row[0]], (row[1], row[2])) for row in rows.tolist()]
        assert [row[:3] for row in rows.tolist()] == sorted({row[:3] for row in rows.tolist()})
        body |= dict(zip(places, rows["count"].tolist(), strict=True))
        assert [row[:2] for row in calls.tolist()] == sorted({row[:2] for row in calls.tolist()})
        called |= {(*places[row], callee): count for row, callee, count in calls.tolist()}
    assert totals == program.totals()
    assert body == program.body()
    assert called == program.called()


def test_what_leads_out_of_the_columns_is_refused() -> None:
    program = Program(random.Random(1), 9)
    program.places = [(0, (0, 0), 1)]
    program.code, program.calls = [[(1, 1, True)]], [[]]
    loops = program.loops()
    with pytest.raises(IndexError):
        loops.of((0, NAMES + 1))
