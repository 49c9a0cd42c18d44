"""Many strings that stay bytes until someone asks for one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from lbr2pgo.support.arrays import I64, Bools, Bytes
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.intervals import offsets_of


@dataclass(frozen=True, slots=True)
class Texts(Sequence[str]):
    """Strings in UTF-8; what is none is kept as surrogates (`os.fsdecode`).

    >>> texts = Texts.of(["a", "", "bc"])
    >>> texts[2], list(texts), texts.take(np.array([2, 0]))
    ('bc', ['a', '', 'bc'], <Texts: 'bc', 'a'>)
    """

    text: Bytes
    """Bytes of all, in any order."""
    start: I64
    """(n,): where in them each begins."""
    end: I64

    @classmethod
    def of(cls, strings: Sequence[str]) -> Texts:
        """The same; those that are bytes already stay so."""
        if isinstance(strings, Texts):
            return strings
        return cls.of_bytes([string.encode("utf-8", "surrogateescape") for string in strings])

    @classmethod
    def of_bytes(cls, encoded: Sequence[bytes]) -> Texts:
        """Strings that are bytes already."""
        bounds = offsets_of([len(each) for each in encoded])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), bounds[:-1], bounds[1:])

    def __repr__(self) -> str:
        return f"<Texts: {', '.join(map(repr, self))}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __len__(self) -> int:
        return len(self.start)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Texts: ...
    def __getitem__(self, index: int | slice) -> str | Texts:
        if isinstance(index, slice):
            return Texts(self.text, self.start[index], self.end[index])
        return _decoded(self.text[self.start[index] : self.end[index]].tobytes())

    def __iter__(self) -> Iterator[str]:
        text = self.text.tobytes()
        for start, end in zip(self.start.tolist(), self.end.tolist(), strict=True):
            yield _decoded(text[start:end])

    def take(self, rows: I64 | Bools) -> Texts:
        """Those of these rows."""
        return Texts(self.text, self.start[rows], self.end[rows])

    def but(self, rows: I64, strings: Sequence[str]) -> Texts:
        """The same with others in some of the rows (k,)."""
        others = Texts.of(strings)
        start, end = self.start.copy(), self.end.copy()
        start[rows], end[rows] = others.start + len(self.text), others.end + len(self.text)
        return Texts(np.concatenate((self.text, others.text)), start, end)

    def lengths(self) -> I64:
        """(n,): bytes of each."""
        return self.end - self.start

    def start_with(self, prefix: bytes) -> Bools:
        """(n,): whether each begins so."""
        begins: Bools = self.lengths() >= len(prefix)
        for i, byte in enumerate(prefix):
            rows = np.flatnonzero(begins)
            begins[rows] = self.text[self.start[rows] + i] == byte
        return begins

    def holding(self, byte: bytes) -> Bools:
        """(n,): whether each holds a byte."""
        places = np.flatnonzero(self.text == ord(byte))
        first, past = (np.searchsorted(places, bounds) for bounds in (self.start, self.end))
        holds: Bools = first < past
        return holds


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
