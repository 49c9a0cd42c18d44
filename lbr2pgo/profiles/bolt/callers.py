"""Functions that jump or call into the middle of given ones.

BOLT reads the whole program for this. Here a scan of the bytes for anything that might be such a
branch says which few functions are worth disassembling. Only x86-64 is scanned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lbr2pgo.profiles.bolt.functions import BoltFunctions
from lbr2pgo.profiles.bolt.lines import Lines
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.arrays import I64, U8, U64, Bools
from lbr2pgo.support.distinct import distinct

_CHUNK = 1 << 22
_LONGEST = 6


@dataclass(frozen=True, slots=True)
class _Form:
    """An encoding of direct branches: opcode bytes (value, mask) and then a displacement."""

    opcode: tuple[tuple[int, int], ...]
    displacement: str

    @property
    def size(self) -> int:
        return len(self.opcode) + np.dtype(self.displacement).itemsize


# Intel SDM vol. 2: CALL and JMP rel32, Jcc rel32, Jcc rel8, JMP rel8, LOOP and JCXZ rel8.
_FORMS = (
    _Form(((0xE8, 0xFE),), "<i4"),
    _Form(((0x0F, 0xFF), (0x80, 0xF0)), "<i4"),
    _Form(((0x70, 0xF0),), "<i1"),
    _Form(((0xEB, 0xFF),), "<i1"),
    _Form(((0xE0, 0xFC),), "<i1"),
)


def possible_callers(image: Image, functions: BoltFunctions, lines: Lines) -> I64:
    """Functions outside of `lines` whose bytes may hold a branch into the middle of one inside."""
    inside = np.zeros(len(functions), np.bool_)
    inside[lines.function] = True
    found = [np.zeros(0, np.int64)]
    scanned = image.machine == "x86-64" and len(lines)
    for source, target in _possible_branches(image) if scanned else ():
        hit = functions.containing(target)
        row = np.flatnonzero((hit >= 0) & inside[hit])
        row = row[(target[row] != functions.start[hit[row]]) & (lines.at(target[row]) >= 0)]
        caller = functions.containing(source[row])
        found.append(caller[(caller >= 0) & ~inside[caller]])
    callers = distinct(np.concatenate(found))
    return callers[~functions.is_pseudo[callers]]


def believable(callers: Lines, functions: BoltFunctions, lines: Lines) -> Lines:
    """Callers without what can't be code.

    Each one counts up to the first bytes that are no instruction, as in BOLT; and not at all if
    it branches to a place in `lines` where no instruction starts, which text and tables in the
    code seem to do.
    """
    callers = _up_to_gaps(callers)
    hit = functions.containing(callers.target)
    into = callers.has_target & (hit >= 0) & np.isin(hit, distinct(lines.function))
    into &= callers.target < functions.end[hit]
    lies = into & (lines.at(callers.target) < 0)
    return callers.take(~np.isin(callers.function, callers.function[lies]))


def _up_to_gaps(lines: Lines) -> Lines:
    is_first = np.ones(len(lines), np.bool_)
    is_first[1:] = lines.function[1:] != lines.function[:-1]
    gaps = np.cumsum(~lines.continues() & ~is_first)
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(lines)), 0))
    return lines.take(gaps == gaps[first])


def _possible_branches(image: Image) -> Iterator[tuple[U64, U64]]:
    """Source and target of whatever looks like a direct branch, at any byte."""
    for segment in image.layout.segments:
        if not segment.executable:
            continue
        code = np.frombuffer(image.stored(segment.address, segment.file_size), np.uint8)
        for start in range(0, len(code), _CHUNK):
            chunk = code[start : start + _CHUNK + _LONGEST]
            for form in _FORMS:
                at = np.flatnonzero(_matches(chunk, form))
                target = segment.address + start + at + form.size + _displacements(chunk, form, at)
                yield (at + (segment.address + start)).astype(np.uint64), target.astype(np.uint64)


def _matches(code: U8, form: _Form) -> Bools:
    """(n - size + 1,): whether the opcode stands at each byte."""
    count = max(0, len(code) - form.size + 1)
    matches = np.ones(count, np.bool_)
    for i, (value, mask) in enumerate(form.opcode):
        matches &= code[i : i + count] & np.uint8(mask) == value
    return matches


def _displacements(code: U8, form: _Form, at: I64) -> I64:
    width = np.dtype(form.displacement).itemsize
    places = at[:, None] + len(form.opcode) + np.arange(width)
    displacements: I64 = code[places].view(form.displacement).reshape(-1).astype(np.int64)
    return displacements
