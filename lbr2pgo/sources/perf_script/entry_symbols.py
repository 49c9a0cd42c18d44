"""Image addresses of the symbols in brstacksym entries of `perf script` text."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lbr2pgo.sources.base import SymbolResolver
from lbr2pgo.support.arrays import U64


class SymbolAddresses:
    """Resolves each symbol once, and counts those that the binary lacks."""

    def __init__(self, resolve: SymbolResolver) -> None:
        self._resolve = resolve
        self._known: dict[int, int | None] = {}
        self.lost = 0
        """Addresses that could not be told; they are 0, which breaks the chain there."""

    def addresses(self, hashes: U64, offsets: U64, names: Mapping[int, bytes]) -> U64:
        """Addresses (m, 2) of symbols with these hashes, whose names are told by them."""
        unique, inverse = np.unique(hashes.ravel(), return_inverse=True)
        found = [self._address(name_hash, names[name_hash]) for name_hash in unique.tolist()]
        bases = np.array([0 if base is None else base for base in found], dtype=np.uint64)
        is_known = np.array([base is not None for base in found], dtype=np.bool_)
        inverse = inverse.reshape(hashes.shape)
        self.lost += int(np.count_nonzero(~is_known[inverse]))
        return np.where(is_known[inverse], bases[inverse] + offsets, np.uint64(0))

    def _address(self, name_hash: int, name: bytes) -> int | None:
        if name_hash not in self._known:
            symbol = name.decode("utf-8", "surrogateescape")
            self._known[name_hash] = self._resolve(symbol) if symbol else None
        return self._known[name_hash]
