"""One entry of `perf script -F brstack` text, with addresses or with symbols.

    FROM/TO/EVENT/INTX/ABORT/CYCLES[/TYPE[/SPEC[/…]]]

as perf prints it (perf: tools/perf/builtin-script.c print_bstack_flags, util/branch.c; v4.3 to
v6.14): FROM and TO are `0x4005c8`, with `-F +dso` followed by `(/path of/the file)`, or for
brstacksym `symbol+0x1c` or `[unknown]`. Symbols and paths may hold blanks, slashes and
parentheses; the flags can't, so an entry is read from them.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.model.branch_stacks import (
    ABORT,
    BRANCH_TYPES,
    CYCLES_MASK,
    CYCLES_SHIFT,
    IN_TRANSACTION,
    MISPREDICTED,
    NEW_TYPE_SHIFT,
    NOT_TAKEN,
    PREDICTED,
    SPEC_OUTCOMES,
    SPEC_SHIFT,
    TYPE_SHIFT,
)
from lbr2pgo.native.jit import compiled_leaf
from lbr2pgo.native.text import (
    hash_name,
    hash_text,
    is_blank,
    is_digit,
    read_address,
    read_decimal,
    read_hex,
    starts_with,
)
from lbr2pgo.native.words import WORD, word_at
from lbr2pgo.support.arrays import U64, Text

NO_ENTRY = -1

_SLASH, _DASH, _PLUS = ord("/"), ord("-"), ord("+")
_OPEN, _CLOSE = ord("("), ord(")")
_ZERO, _A, _M, _N, _P, _X, _SMALL_X = (ord(c) for c in "0AMNPXx")
_UNKNOWN = np.frombuffer(b"[unknown]", dtype=np.uint8)
_NOT_AVAILABLE = np.frombuffer(b"N/A", dtype=np.uint8)

# The letter and what follows the fields differ.
_USUAL_FIELDS = b"/P/-/-/"
_USUAL_MASK = np.uint64(int.from_bytes(b"\xff\0\xff\xff\xff\xff\xff", "little"))
_USUAL = np.uint64(int.from_bytes(_USUAL_FIELDS, "little")) & _USUAL_MASK

_NOTHING = np.uint64(0)
_PREDICTED, _MISPREDICTED = np.uint64(PREDICTED), np.uint64(MISPREDICTED)
_NOT_TAKEN = np.uint64(NOT_TAKEN)
_IN_TRANSACTION, _ABORT = np.uint64(IN_TRANSACTION), np.uint64(ABORT)
_CYCLES_SHIFT, _MOST_CYCLES = np.uint64(CYCLES_SHIFT), np.uint64(CYCLES_MASK)

# EVENT, INTX and ABORT; perf of 2015 printed one field more.
_FEWEST_FLAGS, _MOST_FLAGS = 3, 4
# A path, with something to spare: bounds the search for the end of one.
_LONGEST_NAME = 5000

# branch_new_type_name in perf: tools/perf/util/branch.c (v6.1), for any machine and for Arm
_NEW_TYPES = (
    ("FAULT_ALGN",), ("FAULT_DATA",), ("FAULT_INST",), ("ARCH_1", "ARM64_FIQ"),
    ("ARCH_2", "ARM64_DEBUG_HALT"), ("ARCH_3", "ARM64_DEBUG_EXIT"),
    ("ARCH_4", "ARM64_DEBUG_INST"), ("ARCH_5", "ARM64_DEBUG_DATA"),
)  # fmt: skip


def _words() -> dict[str, int]:
    """The flag bits that each word after the cycles stands for."""
    extended = BRANCH_TYPES.index("EXTEND_ABI") << TYPE_SHIFT
    words = {name: i << TYPE_SHIFT for i, name in enumerate(BRANCH_TYPES[:-1]) if i}
    words |= {name: i << SPEC_SHIFT for i, name in enumerate(SPEC_OUTCOMES) if i}
    for i, names in enumerate(_NEW_TYPES):
        words |= dict.fromkeys(names, extended | i << NEW_TYPE_SHIFT)
    return words


_WORD_HASHES = np.array([hash_name(word.encode()) for word in _words()], dtype=np.uint64)
_WORD_FLAGS = np.array(list(_words().values()), dtype=np.uint64)


@compiled_leaf
def _word_flags(text: Text, place: int, end: int) -> np.uint64:
    """Flags of a word after the cycles; 0 for `-`, `N/A` and what a newer perf may print."""
    if end - place < 2:
        return _NOTHING
    wanted = hash_text(text, place, end)
    for i in range(len(_WORD_HASHES)):
        if _WORD_HASHES[i] == wanted:
            return np.uint64(_WORD_FLAGS[i])
    return _NOTHING


@compiled_leaf
def _field_end(text: Text, place: int, end: int) -> int:
    """Index of the slash or blank after a field; `N/A` is one field."""
    if starts_with(text, place, end, _NOT_AVAILABLE):
        place += len(_NOT_AVAILABLE)
    while place < end and text[place] != _SLASH and not is_blank(text[place]):
        place += 1
    return place


@compiled_leaf
def _read_words(text: Text, place: int, end: int, flags: np.uint64) -> tuple[np.uint64, int]:
    """Read `/TYPE/SPEC/…` up to the next blank."""
    while place < end and text[place] == _SLASH:
        after = _field_end(text, place + 1, end)
        flags |= _word_flags(text, place + 1, after)
        place = after
    if place < end and not is_blank(text[place]):
        return _NOTHING, NO_ENTRY
    return flags, place


@compiled_leaf
def _letter_flags(letter: int) -> np.uint64:
    if letter == _P:
        return _PREDICTED
    if letter == _M:
        return _MISPREDICTED
    if letter == _X:
        return _IN_TRANSACTION
    return _ABORT if letter == _A else _NOTHING


@compiled_leaf
def _read_letter(text: Text, place: int, end: int) -> tuple[np.uint64, int]:
    """Read one field of letters and the slash after it, `place` unchanged if it is none.

    `MN` is what perf prints for a branch that was not taken without saying whether it was
    predicted, so it is no misprediction.
    """
    letter = text[place]
    flags = _letter_flags(letter)
    if flags == _NOTHING and letter != _DASH:
        return _NOTHING, place
    after = place + 1
    if after < end and text[after] == _N:
        flags = _NOT_TAKEN | (flags & _PREDICTED)
        after += 1
    if after < end and text[after] == _SLASH:
        return flags, after + 1
    return _NOTHING, place


@compiled_leaf
def _read_usual(text: Text, place: int, end: int) -> tuple[np.uint64, int, int]:
    """Read what nearly all fields of letters look like, `/P/-/-/`, at once: flags, end, fields.

    Of anything else only the slash is read.
    """
    if place + WORD <= end and word_at(text, place) & _USUAL_MASK == _USUAL:
        flags = _letter_flags(text[place + 1])
        if flags != _NOTHING or text[place + 1] == _DASH:
            return flags, place + len(_USUAL_FIELDS), _FEWEST_FLAGS
    return _NOTHING, place + 1, 0


@compiled_leaf
def read_flags(text: Text, place: int, end: int) -> tuple[np.uint64, int]:
    """Read `/EVENT/INTX/ABORT/CYCLES…` into a flags word; NO_ENTRY if that is not here."""
    if place >= end or text[place] != _SLASH:
        return _NOTHING, NO_ENTRY
    flags, after, fields = _read_usual(text, place, end)
    place = after
    while place < end and not is_digit(text[place]) and fields < _MOST_FLAGS:
        more, after = _read_letter(text, place, end)
        if after == place:
            return _NOTHING, NO_ENTRY
        flags |= more
        place = after
        fields += 1
    cycles, after = read_decimal(text, place, end)
    if fields < _FEWEST_FLAGS or after == place:
        return _NOTHING, NO_ENTRY
    flags |= min(cycles, _MOST_CYCLES) << _CYCLES_SHIFT
    return _read_words(text, after, end, flags)


@compiled_leaf
def _skip_module(text: Text, place: int, end: int, is_last: int) -> int:
    """Index after `(path)`, which the other address or, if `is_last`, the flags must follow."""
    if place >= end or text[place] != _OPEN:
        return place
    for i in range(place + 1, min(end - 1, place + _LONGEST_NAME)):
        if text[i] != _CLOSE or text[i + 1] != _SLASH:
            continue
        if is_last:
            _, after = read_flags(text, i + 1, end)
            is_end = after != NO_ENTRY
        else:
            _, after = read_address(text, i + 2, end)
            is_end = after > i + 2
        if is_end:
            return i + 1
    return end


@compiled_leaf
def read_entry(text: Text, place: int, end: int, entry: U64) -> int:
    """Read an entry with addresses into `entry`, u64[3]: from, to, flags.

    Returns the index after it; NO_ENTRY, and `entry` as it may be, if none is here.
    """
    from_, after = read_address(text, place, end)
    if after == place:
        return NO_ENTRY
    after = _skip_module(text, after, end, 0)
    if after >= end or text[after] != _SLASH:
        return NO_ENTRY
    to, target_end = read_address(text, after + 1, end)
    if target_end == after + 1:
        return NO_ENTRY
    flags, after = read_flags(text, _skip_module(text, target_end, end, 1), end)
    entry[0] = from_
    entry[1] = to
    entry[2] = flags
    return after


@compiled_leaf
def module_end(text: Text, place: int, end: int) -> int:
    """End of the `(path)` that starts here, `place` if it does not close.

    Parentheses in the path are taken to pair up.
    """
    depth = 0
    for i in range(place, end):
        if text[i] == _OPEN:
            depth += 1
        elif text[i] == _CLOSE:
            depth -= 1
        if depth == 0:
            return i + 1
    return place


@compiled_leaf
def _ends_with_module(text: Text, place: int, end: int) -> bool:
    """Whether nothing or `(path)` is here."""
    if place == end:
        return True
    is_closed: bool = text[place] == _OPEN and text[end - 1] == _CLOSE
    return is_closed and module_end(text, place, end) == end


@compiled_leaf
def _is_unknown(text: Text, place: int, end: int) -> bool:
    after = place + len(_UNKNOWN)
    return starts_with(text, place, end, _UNKNOWN) and _ends_with_module(text, after, end)


@compiled_leaf
def split_symbol(text: Text, place: int, end: int) -> tuple[int, np.uint64, bool]:
    """Split `symbol+0x1c(/path)` in `text[place:end]`: end of the name, offset, and if it is sure.

    Not sure is a text without an offset, which is then all name. The name of `[unknown]` is empty.
    """
    if _is_unknown(text, place, end):
        return place, _NOTHING, True
    for i in range(end - 4, place, -1):
        if text[i] == _PLUS and text[i + 1] == _ZERO and text[i + 2] == _SMALL_X:
            offset, after = read_hex(text, i + 3, end)
            if after > i + 3 and _ends_with_module(text, after, end):
                return i, offset, True
    return end, _NOTHING, False


@compiled_leaf
def find_flags(text: Text, place: int, end: int) -> int:
    """Index of the slash before the next flags on this line, `end` if there are none."""
    while place < end:
        if text[place] == _SLASH:
            _, after = read_flags(text, place, end)
            if after != NO_ENTRY:
                return place
        place += 1
    return end


@compiled_leaf
def split_symbols(text: Text, place: int, end: int) -> int:
    """Index of the slash between FROM and TO in `text[place:end]`, NO_ENTRY if there is none.

    It is the first that a complete symbol stands before; without one, the first.
    """
    first = NO_ENTRY
    if end - place > 2 * _LONGEST_NAME:
        return first
    for i in range(place + 1, end - 1):
        if text[i] != _SLASH:
            continue
        if first == NO_ENTRY:
            first = i
        _, _, is_sure = split_symbol(text, place, i)
        if is_sure:
            return i
    return first
