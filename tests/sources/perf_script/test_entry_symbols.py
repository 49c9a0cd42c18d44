from __future__ import annotations

import numpy as np

from lbr2pgo.sources.perf_script.entry_symbols import SymbolAddresses

NAMES = {1: b"main", 2: b"gone", 3: b"", 4: b"\xff"}
KNOWN = {"main": 0x1000, "\udcff": 0x2000}


class Resolver:
    """Knows some names, and notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, name: str) -> int | None:
        self.asked.append(name)
        return KNOWN.get(name)


def addresses(symbols: SymbolAddresses, *places: tuple[int, int]) -> list[int]:
    hashes, offsets = np.array([places, places[::-1]], np.uint64).transpose(2, 0, 1)
    found = symbols.addresses(hashes, offsets, NAMES)
    assert found.shape == hashes.shape
    return found[0].tolist()


def test_an_address_is_the_symbols_and_the_offset() -> None:
    symbols = SymbolAddresses(Resolver())
    assert addresses(symbols, (1, 4), (4, 0)) == [0x1004, 0x2000]
    assert symbols.lost == 0


def test_what_the_binary_lacks_is_0_and_counted() -> None:
    symbols = SymbolAddresses(Resolver())
    assert addresses(symbols, (2, 4), (3, 4), (1, 0)) == [0, 0, 0x1000]
    assert symbols.lost == 4  # two, twice


def test_each_symbol_is_resolved_once_and_one_without_a_name_never() -> None:
    resolve = Resolver()
    symbols = SymbolAddresses(resolve)
    for _ in range(2):
        addresses(symbols, (1, 0), (2, 0), (3, 0), (1, 8))
    assert sorted(resolve.asked) == ["gone", "main"]
