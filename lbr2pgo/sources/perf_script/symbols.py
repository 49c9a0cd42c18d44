"""Image addresses of the symbols in brstacksym entries of `perf script` text."""

from __future__ import annotations

import numpy as np

from lbr2pgo.sources.base import SymbolResolver
from lbr2pgo.support.arrays import I64, U64


class Symbols:
    """Resolves each symbol once, and counts those that the binary lacks."""

    def __init__(self, resolve: SymbolResolver) -> None:
        self._resolve = resolve
        self._known: dict[int, int | None] = {}
        self.lost = 0
        """Addresses that could not be told; they are 0, which breaks the chain there."""

    def addresses(self, hashes: U64, offsets: U64, names: I64, text: bytes) -> U64:
        """Addresses (m, 2) of symbols with these hashes.

        names (m, 2, 2): where their names start and end in `text`.
        """
        unique, firsts, inverse = np.unique(hashes.ravel(), return_index=True, return_inverse=True)
        places = names.reshape(-1, 2)[firsts].tolist()
        found = [self._address(h, text, *p) for h, p in zip(unique.tolist(), places, strict=True)]
        bases = np.array([0 if base is None else base for base in found], dtype=np.uint64)
        is_known = np.array([base is not None for base in found], dtype=np.bool_)
        inverse = inverse.reshape(hashes.shape)
        self.lost += int(np.count_nonzero(~is_known[inverse]))
        return np.where(is_known[inverse], bases[inverse] + offsets, np.uint64(0))

    def _address(self, name_hash: int, text: bytes, start: int, end: int) -> int | None:
        if name_hash not in self._known:
            name = text[start:end].decode("utf-8", "surrogateescape")
            self._known[name_hash] = self._resolve(name) if name else None
        return self._known[name_hash]
