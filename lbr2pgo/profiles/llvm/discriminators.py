"""What LLVM packs into a line table's discriminator.

Three numbers of variable length, lowest bits first: the base discriminator, which tells blocks of
one line apart; the duplication factor, by which unrolling or vectorising divided a count; and a
copy identifier. A single 1 bit stands for zero; otherwise a 0 bit goes before 5 bits, with 7 more
if the bit after them is set (LLVM: llvm/include/llvm/IR/DebugInfoMetadata.h, DILocation).

Code built for pseudo probes marks its calls with three 1 bits and holds the probe's number
instead, or a small base discriminator (LLVM: llvm/include/llvm/IR/PseudoProbe.h).
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.support.arrays import U8, U32

_ONE = np.uint32(1)
_CONTINUES = np.uint32(0x20)
_LOW, _HIGH = np.uint32(0x1F), np.uint32(0xFE0)
_PROBE_MARK = np.uint32(7)
_PROBE_HAS_BASE = np.uint32(1 << 28)


def _first(words: U32) -> U32:
    """The first of the packed numbers."""
    payload = words >> _ONE
    long = ((payload >> _ONE) & _HIGH) | (payload & _LOW)
    value = np.where(payload & _CONTINUES, long, payload & _LOW)
    return np.where(words & _ONE, np.uint32(0), value).astype(np.uint32)


def _rest(words: U32) -> U32:
    """The packed numbers behind the first."""
    length = np.where(words & np.uint32(0x40), np.uint32(14), np.uint32(7))
    return np.where(words & _ONE, words >> _ONE, words >> length).astype(np.uint32)


def probe_number(words: U32) -> U32:
    """The number of the call probe that a word stands for.

    >>> probe_number(np.array([9 << 3 | 7, 1 << 28 | 5 << 16 | 9 << 3 | 7], np.uint32)).tolist()
    [9, 9]
    """
    mask = np.where(words & _PROBE_HAS_BASE, np.uint32(0x1FFF), np.uint32(0xFFFF))
    number: U32 = (words >> np.uint32(3)) & mask
    return number


def probe_kind(words: U32) -> U8:
    """What each word's call probe marks, a `ProbeKind`; 0 for a word that stands for none.

    >>> probe_kind(np.array([2 << 26 | 9 << 3 | 7, 2 << 26 | 9 << 3], np.uint32)).tolist()
    [2, 0]
    """
    is_probe = words & _PROBE_MARK == _PROBE_MARK
    return np.where(is_probe, words >> np.uint32(26) & np.uint32(3), 0).astype(np.uint8)


def probe_attributes(words: U32) -> U8:
    """The attributes of the call probe that a word stands for."""
    return (words >> np.uint32(29)).astype(np.uint8)


def _of_probe(words: U32) -> U32:
    """What a probe's word tells apart: its base discriminator if it has one, else its number."""
    base = (words >> np.uint32(16)) & np.uint32(0x7)
    return np.where(words & _PROBE_HAS_BASE, base, probe_number(words)).astype(np.uint32)


def base_discriminator(words: U32) -> U32:
    """What tells blocks of one line apart.

    >>> base_discriminator(np.array([0, 1, 2, 4, 0x7F << 7 | 6], np.uint32)).tolist()
    [0, 0, 1, 2, 3]
    >>> probes = np.array([9 << 3 | 7, 1 << 28 | 5 << 16 | 9 << 3 | 7], np.uint32)
    >>> base_discriminator(probes).tolist()
    [9, 5]
    """
    return np.where(words & _PROBE_MARK == _PROBE_MARK, _of_probe(words), _first(words))


def duplication_factor(words: U32) -> U32:
    """By how much the optimizer divided the count of one copy; at least 1.

    >>> duplication_factor(np.array([0, 1 | 8 << 1, 2 | 4 << 7], np.uint32)).tolist()
    [1, 4, 2]
    """
    factor = _first(_rest(words))
    return np.maximum(factor, _ONE)
