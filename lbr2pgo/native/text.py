"""Numbers, words and lines in bytes of text: the small steps that all text kernels share.

A place is an index into `text`, uint8[n]; `end` is where the line (or the text) ends. Functions
that read something return where it ends, which is where they started if it was not there.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.native.jit import compiled_leaf
from lbr2pgo.native.words import WORD, word_at
from lbr2pgo.support.arrays import Text

NEWLINE, RETURN, TAB, BLANK = 10, 13, 9, 32
ZERO, NINE, LETTER_X = ord("0"), ord("9"), ord("x")

_NOT_HEX = 255
_HEX_DIGITS = np.full(256, _NOT_HEX, dtype=np.uint8)
for _digit, _characters in enumerate([*"0123456789", "aA", "bB", "cC", "dD", "eE", "fF"]):
    for _character in _characters:
        _HEX_DIGITS[ord(_character)] = _digit

_ONES, _TOP_BITS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_NEWLINES = np.uint64(NEWLINE) * _ONES
_FOUR, _TEN = np.uint64(4), np.uint64(10)
_TOP_DIGIT = np.uint64(60)
_DECIMAL_LIMIT = np.uint64((2**64 - 10) // 10)
# FNV-1a, 64 bits: names are told apart by it.
_HASH_START, _HASH_FACTOR = 0xCBF29CE484222325, 0x100000001B3
_HASH_SEED, _HASH_PRIME = np.uint64(_HASH_START), np.uint64(_HASH_FACTOR)


def hash_name(name: bytes) -> int:
    """What `hash_text` makes of these bytes."""
    value = _HASH_START
    for byte in name:
        value = ((value ^ byte) * _HASH_FACTOR) & 0xFFFFFFFFFFFFFFFF
    return value


@compiled_leaf
def hash_text(text: Text, place: int, end: int) -> np.uint64:
    """A 64-bit hash of `text[place:end]`."""
    value = _HASH_SEED
    for i in range(place, end):
        value = (value ^ np.uint64(text[i])) * _HASH_PRIME
    return value


@compiled_leaf
def line_end(text: Text, place: int, end: int) -> int:
    """Index of the next newline, `end` if there is none.

    Lines are long, so eight bytes are looked at together: taking 1 from each borrows where one was
    a newline and is 0 now.
    """
    while place + WORD <= end:
        differing = word_at(text, place) ^ _NEWLINES
        if (differing - _ONES) & ~differing & _TOP_BITS:
            break
        place += WORD
    while place < end and text[place] != NEWLINE:
        place += 1
    return place


@compiled_leaf
def is_blank(byte: int) -> bool:
    """Whether a byte separates words: a blank, a tab and the like, or a DOS line's return."""
    return byte == BLANK or (TAB <= byte <= RETURN and byte != NEWLINE)


@compiled_leaf
def skip_blanks(text: Text, place: int, end: int) -> int:
    """Index of the next byte that is no blank."""
    while place < end and is_blank(text[place]):
        place += 1
    return place


@compiled_leaf
def word_end(text: Text, place: int, end: int) -> int:
    """Index after the word that starts here."""
    while place < end and not is_blank(text[place]):
        place += 1
    return place


@compiled_leaf
def starts_with(text: Text, place: int, end: int, word: Text) -> bool:
    """Whether the bytes of `word` stand here."""
    if end - place < len(word):
        return False
    for i in range(len(word)):  # noqa: SIM110 - Numba compiles no generator expressions
        if text[place + i] != word[i]:
            return False
    return True


@compiled_leaf
def is_digit(byte: int) -> bool:
    """Whether a byte is a decimal digit."""
    return ZERO <= byte <= NINE


@compiled_leaf
def is_hex_digit(byte: int) -> bool:
    """Whether a byte is a hexadecimal digit of either case."""
    return bool(_HEX_DIGITS[byte] != _NOT_HEX)


@compiled_leaf
def read_hex(text: Text, place: int, end: int) -> tuple[np.uint64, int]:
    """Read hexadecimal digits; none are read if they make more than 64 bits."""
    value = np.uint64(0)
    here = place
    while here < end:
        digit = _HEX_DIGITS[text[here]]
        if digit == _NOT_HEX:
            break
        if value >> _TOP_DIGIT:
            return np.uint64(0), place
        value = (value << _FOUR) | np.uint64(digit)
        here += 1
    return value, here


@compiled_leaf
def read_decimal(text: Text, place: int, end: int) -> tuple[np.uint64, int]:
    """Read decimal digits; none are read if they make more than 64 bits."""
    value = np.uint64(0)
    here = place
    while here < end and is_digit(text[here]):
        if value > _DECIMAL_LIMIT:
            return np.uint64(0), place
        value = value * _TEN + np.uint64(text[here] - ZERO)
        here += 1
    return value, here


@compiled_leaf
def read_address(text: Text, place: int, end: int) -> tuple[np.uint64, int]:
    """Read `0x` and hexadecimal digits."""
    if place + 2 < end and text[place] == ZERO and text[place + 1] == LETTER_X:
        value, after = read_hex(text, place + 2, end)
        if after > place + 2:
            return value, after
    return np.uint64(0), place
