"""Borders of functions, against BOLT's rules written down plainly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.program.blocks._function_borders import (
    NEW_FUNCTION,
    NO_FUNCTION,
    SAME_FUNCTION,
    SECONDARY_ENTRY,
    function_limits,
    symbol_roles,
)

SECTIONS = [(0, 20), (20, 31), (35, 60)]


@dataclass
class Symbol:
    address: int
    size: int
    body_size: int
    section: int
    is_function: bool
    is_label: bool


@dataclass
class Function:
    start: int
    size: int
    section: tuple[int, int]

    def contains(self, address: int) -> bool:
        return self.start <= address < self.start + self.size

    def tolerates(self, symbol: Symbol) -> bool:
        if not self.section[0] <= symbol.address < self.section[1]:
            return False
        return symbol.is_label or (symbol.size == 0 and self.contains(symbol.address))


def expected_roles(symbols: list[Symbol]) -> list[int]:
    before: Function | None = None
    roles = []
    for symbol in symbols:
        role = NO_FUNCTION
        if symbol.section >= 0 and symbol.address != SECTIONS[symbol.section][1]:
            role = NEW_FUNCTION if before is None else seen_from(before, symbol)
        if role == NEW_FUNCTION:
            before = Function(symbol.address, symbol.body_size, SECTIONS[symbol.section])
        elif role == SAME_FUNCTION:
            assert before is not None
            before.size = max(before.size, symbol.body_size)
        roles.append(role)
    return roles


def seen_from(before: Function, symbol: Symbol) -> int:
    inside = before.contains(symbol.address)
    if symbol.is_function and inside and symbol.address != before.start:
        return NO_FUNCTION if before.tolerates(symbol) else SECONDARY_ENTRY
    if not symbol.is_function and (inside or (before.size == 0 and before.tolerates(symbol))):
        return NO_FUNCTION
    return SAME_FUNCTION if symbol.address == before.start else NEW_FUNCTION


def expected_limits(
    functions: list[Function], symbols: list[Symbol]
) -> tuple[list[int], list[bool]]:
    entries = [False] * len(symbols)
    limits = []
    for i, function in enumerate(functions):
        after = functions[i + 1].start if i + 1 < len(functions) else 1000
        limit = min(function.section[1], after)
        for k, symbol in enumerate(symbols):
            if function.start < symbol.address < after:
                if not function.tolerates(symbol):
                    limit = min(limit, symbol.address)
                    break
                entries[k] = True
        limits.append(limit)
    return limits, entries


@st.composite
def some_symbols(draw: st.DrawFn) -> list[Symbol]:
    symbols = []
    for _ in range(draw(st.integers(0, 12))):
        section = draw(st.integers(-1, len(SECTIONS) - 1))
        low, high = SECTIONS[section] if section >= 0 else (0, 70)
        size = draw(st.integers(0, 6))
        symbols.append(
            Symbol(
                address=draw(st.integers(low, high)),
                size=size,
                body_size=size + draw(st.integers(0, 3)),
                section=section,
                is_function=draw(st.booleans()),
                is_label=draw(st.booleans()),
            )
        )
    return sorted(symbols, key=lambda symbol: symbol.address)


def columns(symbols: list[Symbol]) -> dict[str, np.ndarray]:
    dtypes = {"section": np.int32, "is_function": np.uint8, "is_label": np.uint8}
    names = ("address", "size", "body_size", "section", "is_function", "is_label")
    return {
        name: np.array([getattr(s, name) for s in symbols], dtypes.get(name, np.uint64))
        for name in names
    }


@settings(deadline=None)
@given(some_symbols())
def test_what_symbols_are_to_functions(symbols: list[Symbol]) -> None:
    found = symbol_roles(**columns(symbols), sections=np.array(SECTIONS, np.uint64))
    assert found.tolist() == expected_roles(symbols)


@settings(deadline=None)
@given(some_symbols(), st.sets(st.integers(0, 59), max_size=6), st.randoms())
def test_limits_and_entries(symbols: list[Symbol], starts: set[int], random: st.DataObject) -> None:
    functions = [
        Function(start, random.randint(0, 8), section)
        for start in sorted(starts)
        for section in SECTIONS
        if section[0] <= start < section[1]
    ]
    table = columns(symbols)
    limits, entries = function_limits(
        np.array([f.start for f in functions], np.uint64),
        np.array([f.size for f in functions], np.uint64),
        np.array([f.section for f in functions], np.uint64).reshape(-1, 2),
        table["address"],
        table["size"],
        table["is_label"],
    )
    assert (limits.tolist(), entries.tolist()) == expected_limits(functions, symbols)
