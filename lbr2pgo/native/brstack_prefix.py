"""What stands before a sample's branch stack on a line of `perf script` text.

perf prints, each if asked for with `-F` (perf: tools/perf/builtin-script.c
perf_sample__fprintf_start, process_event; v4.3 to v6.14)::

    COMM PID/TID [CPU] MISC SECONDS.FRACTION: PERIOD EVENT: IP SYMBOL (DSO)

COMM and EVENT may hold blanks (`raw 0x20c4:u:`), so the line is read from its firm points: the
time, the colon after the event, and the width of an address (17 columns, blanks counted).
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.native.jit import compiled_leaf
from lbr2pgo.native.text import (
    hash_text,
    is_digit,
    is_hex_digit,
    read_decimal,
    read_hex,
    skip_blanks,
    starts_with,
    word_end,
)
from lbr2pgo.support.arrays import I64, U64, Text

# Columns of a prefix, u64: what it says, or what FOUND says is not there.
PID, TID, TIME, EVENT, IP, FOUND, EVENT_START, EVENT_END, PLACE = range(9)
"""EVENT: hash of the event's name, which stands at EVENT_START. PLACE: of the line in the file,
for the caller to fill in."""
PREFIX_SIZE = 9

# Bits of FOUND.
HAS_PID, HAS_TIME, HAS_EVENT, HAS_IP, IS_NARROW = (np.uint64(1 << i) for i in range(5))
"""IS_NARROW: IP is a lone number that could only be an address by its digits."""

MOST_WORDS = 64
"""A line has no prefix if its first words beyond these are not its stack."""

_COLON, _DOT, _SLASH, _DASH, _OPEN = (ord(c) for c in ":./-[")
_SMALL_A, _SMALL_Z = ord("a"), ord("z")
_CASE = 0x20
# perf prints a blank and `%16lx`.
_ADDRESS_WIDTH = 17
# `%10lu`; a pid is `%5d` or `%7d` and has seven digits at most.
_PERIOD_WIDTH = 10
_PID_DIGITS = 7
_LONGEST_MISC = 4
_NANOSECOND_DIGITS = 9
_RAW = np.frombuffer(b"raw ", dtype=np.uint8)
_NONE = np.uint64(0xFFFFFFFFFFFFFFFF)
_SECOND, _TEN = np.uint64(10**9), np.uint64(10)


@compiled_leaf
def read_words(text: Text, place: int, end: int, words: I64) -> int:
    """Start and end of the words of a text into `words`, i64[MOST_WORDS, 2]; how many."""
    count = 0
    place = skip_blanks(text, place, end)
    while place < end and count < len(words):
        words[count, 0] = place
        place = word_end(text, place, end)
        words[count, 1] = place
        place = skip_blanks(text, place, end)
        count += 1
    return count


@compiled_leaf
def _is_decimal(text: Text, place: int, end: int) -> bool:
    for i in range(place, end):
        if not is_digit(text[i]):
            return False
    return place < end


@compiled_leaf
def _is_hex(text: Text, place: int, end: int) -> bool:
    for i in range(place, end):
        if not is_hex_digit(text[i]):
            return False
    return 0 < end - place <= 16


@compiled_leaf
def _width(words: I64, i: int, start: int) -> int:
    """Columns that a word takes up, with the blanks before it."""
    return int(words[i, 1] - (words[i - 1, 1] if i > 0 else start))


@compiled_leaf
def _read_time(text: Text, place: int, end: int) -> np.uint64:
    """Nanoseconds of `12.345678:`, _NONE if the word is none."""
    seconds, dot = read_decimal(text, place, end)
    if dot == place or dot >= end or text[dot] != _DOT:
        return _NONE
    fraction, after = read_decimal(text, dot + 1, end)
    digits = after - dot - 1
    if not 0 < digits <= _NANOSECOND_DIGITS or after + 1 != end or text[after] != _COLON:
        return _NONE
    for _ in range(_NANOSECOND_DIGITS - digits):
        fraction *= _TEN
    return seconds * _SECOND + fraction


@compiled_leaf
def _find_time(text: Text, words: I64, count: int, prefix: U64) -> int:
    """Index of the word that is the time, -1 if there is none."""
    for i in range(count):
        time = _read_time(text, words[i, 0], words[i, 1])
        if time != _NONE:
            prefix[TIME] = time
            prefix[FOUND] |= HAS_TIME
            return i
    return -1


@compiled_leaf
def _find_event(text: Text, words: I64, count: int, time: int) -> int:
    """Index of the word that ends the event's name, -1 if there is none."""
    found = -1
    for i in range(time + 1, count):
        if text[words[i, 1] - 1] == _COLON:
            found = i
            if time >= 0:
                break
    return found


@compiled_leaf
def _name_start(text: Text, words: I64, event: int, time: int) -> int:
    """Index of the first word of the event's name, after a time and a period."""
    if time >= 0:
        first = time + 1
        is_period = first < event and _is_decimal(text, words[first, 0], words[first, 1])
        return first + 1 if is_period else first
    is_raw = event > 0 and starts_with(text, words[event - 1, 0], words[event, 0], _RAW)
    return event - 1 if is_raw else event


@compiled_leaf
def _set_event(text: Text, words: I64, first: int, last: int, prefix: U64) -> None:
    start, end = words[first, 0], words[last, 1] - 1
    prefix[EVENT] = hash_text(text, start, end)
    prefix[EVENT_START] = np.uint64(start)
    prefix[EVENT_END] = np.uint64(end)
    prefix[FOUND] |= HAS_EVENT


@compiled_leaf
def _set_ip(text: Text, words: I64, i: int, prefix: U64) -> None:
    value, _ = read_hex(text, words[i, 0], words[i, 1])
    prefix[IP] = value
    prefix[FOUND] |= HAS_IP


@compiled_leaf
def _find_wide_address(text: Text, words: I64, first: int, count: int, start: int) -> int:
    """Index of the first word that is as wide as perf prints addresses, -1 if there is none."""
    for i in range(first, count):
        if _width(words, i, start) >= _ADDRESS_WIDTH and _is_hex(text, words[i, 0], words[i, 1]):
            return i
    return -1


@compiled_leaf
def _find_narrow_address(text: Text, words: I64, count: int, is_address: int, prefix: U64) -> int:
    """Index of the last word if it is an address rather than a pid, -1 if it is not.

    Text that was edited or trimmed lacks perf's blanks. A number with letters, or longer than a
    pid, is an address; any other is one if the file has such addresses (`is_address`).
    """
    last = count - 1
    if last < 0 or not _is_hex(text, words[last, 0], words[last, 1]):
        return -1
    if last > 0 and not is_digit(text[words[last - 1, 1] - 1]):
        return -1
    is_decimal = _is_decimal(text, words[last, 0], words[last, 1])
    if is_decimal and words[last, 1] - words[last, 0] <= _PID_DIGITS:
        return last if is_address else -1
    prefix[FOUND] |= IS_NARROW
    return last


@compiled_leaf
def _find_address(
    text: Text, words: I64, first: int, count: int, start: int, is_address: int, prefix: U64
) -> int:
    """Index of the word that is the sample's address, -1 if there is none."""
    found = _find_wide_address(text, words, first, count, start)
    if found >= 0:
        return found
    if first == 0:
        return _find_narrow_address(text, words, count, is_address, prefix)
    if first < count and _is_hex(text, words[first, 0], words[first, 1]):
        return first
    return -1


@compiled_leaf
def _is_misc(text: Text, place: int, end: int) -> bool:
    """Whether a word may be what `-F misc` prints: letters such as `U` or `KGH`."""
    for i in range(place, end):
        if not _SMALL_A <= (text[i] | _CASE) <= _SMALL_Z:
            return False
    return end - place <= _LONGEST_MISC


@compiled_leaf
def _read_number(text: Text, place: int, end: int) -> tuple[np.uint64, int]:
    """Read a pid, which is -1 for what no process did."""
    sign = 1 if place < end and text[place] == _DASH else 0
    value, after = read_decimal(text, place + sign, end)
    if after == place + sign or value >> np.uint64(31):
        return value, place
    return (_NONE if sign else value), after


@compiled_leaf
def _read_pid(text: Text, place: int, end: int, prefix: U64) -> bool:
    """Read `PID/TID` or one number."""
    pid, after = _read_number(text, place, end)
    if after == place:
        return False
    tid = _NONE
    if after < end and text[after] == _SLASH:
        tid, last = _read_number(text, after + 1, end)
        if last == after + 1:
            return False
        after = last
    if after != end:
        return False
    prefix[PID] = pid
    prefix[TID] = tid
    prefix[FOUND] |= HAS_PID
    return True


@compiled_leaf
def _find_pid(text: Text, words: I64, count: int, prefix: U64) -> None:
    """Read the pid, the last word but for the flags and the number of the CPU."""
    last = count - 1
    if last >= 0 and _is_misc(text, words[last, 0], words[last, 1]):
        last -= 1
    if last >= 0 and text[words[last, 0]] == _OPEN:
        last -= 1
    if last >= 0:
        _read_pid(text, words[last, 0], words[last, 1], prefix)


@compiled_leaf
def _is_period(text: Text, words: I64, i: int, start: int) -> bool:
    return (
        i >= 0
        and _width(words, i, start) >= _PERIOD_WIDTH
        and _is_decimal(text, words[i, 0], words[i, 1])
    )


@compiled_leaf
def read_prefix(
    text: Text, start: int, words: I64, count: int, is_address: int, prefix: U64
) -> None:
    """Read the first `count` words of the line at `start` into `prefix`, u64[PREFIX_SIZE].

    `is_address` says whether a short lone number is an address (or else a pid), which the survey
    of the whole file finds out.
    """
    prefix[:] = np.uint64(0)
    prefix[PID] = prefix[TID] = _NONE
    time = _find_time(text, words, count, prefix)
    event = _find_event(text, words, count, time)
    first = max(time, event) + 1
    ip = _find_address(text, words, first, count, start, is_address, prefix)
    if ip >= 0:
        _set_ip(text, words, ip, prefix)
    head = ip if ip >= 0 else count
    if time < 0 and ip < 0 and event < count - 1:
        event = -1  # a word with a colon in some other text
    if event >= 0:
        head = _name_start(text, words, event, time)
        _set_event(text, words, head, event, prefix)
        if time < 0 and _is_period(text, words, head - 1, start):
            head -= 1
    if time >= 0:
        head = time
    _find_pid(text, words, head, prefix)
