"""The grammar of a line of `perf script -F …brstack` text.

perf prints, each if asked for with `-F` (perf: tools/perf/builtin-script.c
perf_sample__fprintf_start, process_event; v4.3 to v6.14)::

    COMM PID/TID [CPU] MISC SECONDS.FRACTION: PERIOD EVENT: DATA WEIGHT IP SYMBOL (DSO)  ENTRY …

DATA is, with `-F addr,data_src` (perf_sample__fprintf_addr, data_src__fprintf)::

    ADDRESS SOURCE |OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A

An address without a source says nothing, and is passed over. Behind nothing but a pid it looks as a
sample's own, which it is taken for.

and of each entry of the branch stack (print_bstack_flags there, and util/branch.c)::

    FROM/TO/EVENT/INTX/ABORT/CYCLES[/TYPE[/SPEC[/…]]]

FROM and TO are `0x4005c8`, with `-F +dso` followed by `(/path of/the file)`, or for brstacksym
`symbol+0x1c` or `[unknown]`. Text that was edited for llvm-profgen may have nothing but FROM/TO.

COMM, EVENT, symbols and paths may hold blanks, slashes and parentheses. So what stands before the
stack is read from its firm points: the time, the colon after the event, the words `|OP`, and the
width of an address (17 columns, blanks counted, and 16 of one of data); an entry from its flags,
which hold none of them.
"""

import cython
import numpy as np

from libc.string cimport memchr, memset
from libc.stdint cimport int32_t, uint8_t, uint64_t

from lbr2pgo.native.bits cimport (
    ABORT, CYCLES_MASK, CYCLES_SHIFT, IN_TRANSACTION, MISPREDICTED, NEW_TYPE_SHIFT, NOT_TAKEN_SHIFT,
    PREDICTED, SPEC_SHIFT, TYPE_SHIFT,
)
from lbr2pgo.sources._text cimport (
    hash_text, is_blank, is_digit, is_hex_digit, read_address, read_decimal, read_hex,
    skip_blanks, starts_with, word_end,
)

from lbr2pgo.native.bits import BRANCH_TYPES, NEW_BRANCH_TYPES, SPEC_OUTCOMES

cdef uint64_t NOT_TAKEN = 1ULL << NOT_TAKEN_SHIFT

cdef enum:
    # EVENT, INTX and ABORT; perf of 2015 printed one field more.
    FEWEST_FLAGS = 3
    MOST_FLAGS = 4
    # A path, with something to spare: bounds the search for the end of one.
    LONGEST_NAME = 5000
    # A line has no prefix if its first words beyond these are not its stack.
    MOST_WORDS = 64
    # perf prints a blank and `%16lx`; of data, without the blank.
    ADDRESS_WIDTH = 17
    DATA_WIDTH = 16
    # `%10lu`; a pid is `%5d` or `%7d` and has seven digits at most.
    PERIOD_WIDTH = 10
    PID_DIGITS = 7
    MOST_HEX_DIGITS = 16
    LONGEST_MISC = 4
    NANOSECOND_DIGITS = 9
    NO_WORD = -1

cdef uint64_t NO_TIME = <uint64_t>-1

def _flags_by_word():
    """The flag bits that each word after the cycles stands for."""
    words = {name: i << TYPE_SHIFT for i, name in enumerate(BRANCH_TYPES) if i}
    words |= {name: i << SPEC_SHIFT for i, name in enumerate(SPEC_OUTCOMES) if i}
    extended = words.pop("EXTEND_ABI")
    for i, name in enumerate(NEW_BRANCH_TYPES):
        words[name] = extended | i << NEW_TYPE_SHIFT
    # perf: tools/perf/util/branch.c, branch_new_type_name (v6.1), where it was not built for Arm
    first = NEW_BRANCH_TYPES.index("ARM64_FIQ")
    words |= {f"ARCH_{1 + i}": extended | first + i << NEW_TYPE_SHIFT for i in range(5)}
    return words


def _hash(name):
    cdef const uint8_t[::1] text = name.encode()
    return hash_text(&text[0], 0, text.shape[0])


cdef const uint64_t[::1] WORD_HASHES = np.array([*map(_hash, _flags_by_word())], np.uint64)
cdef const uint64_t[::1] WORD_FLAGS = np.array([*_flags_by_word().values()], np.uint64)


# Flags

cdef uint64_t _word_flags(const uint8_t *text, Py_ssize_t place, Py_ssize_t end) noexcept nogil:
    """Flags of a word after the cycles; 0 for `-`, `N/A` and what a newer perf may print."""
    cdef uint64_t wanted
    cdef Py_ssize_t i
    if end - place < 2:
        return 0
    wanted = hash_text(text, place, end)
    for i in range(WORD_HASHES.shape[0]):
        with cython.boundscheck(False):  # both tables have an entry for each word
            if WORD_HASHES[i] == wanted:
                return WORD_FLAGS[i]
    return 0


cdef inline Py_ssize_t _field_end(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end
) noexcept nogil:
    """Index of the slash or blank after a field; `N/A` is one field."""
    if starts_with(text, place, end, b"N/A", 3):
        place += 3
    while place < end and text[place] != b"/" and not is_blank(text[place]):
        place += 1
    return place


cdef Py_ssize_t _read_words(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, uint64_t *flags
) noexcept nogil:
    """Read `/TYPE/SPEC/…` up to the next blank, and add to the flags."""
    cdef Py_ssize_t after
    while place < end and text[place] == b"/":
        after = _field_end(text, place + 1, end)
        flags[0] |= _word_flags(text, place + 1, after)
        place = after
    return place if place == end or is_blank(text[place]) else NO_ENTRY


cdef inline uint64_t _letter_flags(uint8_t letter) noexcept nogil:
    if letter == b"P":
        return PREDICTED
    if letter == b"M":
        return MISPREDICTED
    if letter == b"X":
        return IN_TRANSACTION
    return ABORT if letter == b"A" else 0


cdef Py_ssize_t _read_letter(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, uint64_t *flags
) noexcept nogil:
    """Read one field of letters and the slash after it, and add to the flags.

    `MN` is what perf prints for a branch that was not taken without saying whether it was
    predicted, so it is no misprediction.
    """
    cdef uint64_t found = _letter_flags(text[place])
    cdef Py_ssize_t after = place + 1
    if found == 0 and text[place] != b"-":
        return place
    if after < end and text[after] == b"N":
        found = NOT_TAKEN | (found & PREDICTED)
        after += 1
    if after == end or text[after] != b"/":
        return place
    flags[0] |= found
    return after + 1


cdef Py_ssize_t _read_letters(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, uint64_t *flags
) noexcept nogil:
    """Read `/EVENT/INTX/ABORT/`, up to the digits of CYCLES; NO_ENTRY if that is not here."""
    cdef Py_ssize_t after
    cdef int fields = 0
    flags[0] = 0
    place += 1
    while place < end and not is_digit(text[place]) and fields < MOST_FLAGS:
        after = _read_letter(text, place, end, flags)
        if after == place:
            return NO_ENTRY
        place = after
        fields += 1
    return place if fields >= FEWEST_FLAGS else NO_ENTRY


cdef inline Py_ssize_t _read_flags(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, uint64_t *flags
) noexcept nogil:
    """Read `/EVENT/INTX/ABORT/CYCLES…` into a flags word; NO_ENTRY if that is not here."""
    cdef Py_ssize_t after
    cdef uint64_t cycles
    if place >= end or text[place] != b"/":
        return NO_ENTRY
    if (
        starts_with(text, place + 2, end, b"/-/-/", 5) and text[place + 1] in b"PM"
        and place + 7 < end and is_digit(text[place + 7])
    ):  # what nearly all look like, at once
        flags[0] = PREDICTED if text[place + 1] == b"P" else MISPREDICTED
        place += 7
    else:
        place = _read_letters(text, place, end, flags)
        if place == NO_ENTRY:
            return NO_ENTRY
    after = read_decimal(text, place, end, &cycles)
    if after == place:
        return NO_ENTRY
    flags[0] |= min(cycles, <uint64_t>CYCLES_MASK) << CYCLES_SHIFT
    if after + 1 < end and text[after] == b"/" and is_blank(text[after + 1]):
        return after + 1  # nothing but the slash, as of perf 6.1
    return _read_words(text, after, end, flags)


cdef Py_ssize_t _find_flags(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, uint64_t *flags, Py_ssize_t *after
) noexcept nogil:
    """Index of the slash before the next flags on this line, `end` if there are none.

    Reads these flags, which end at `after`.
    """
    cdef const uint8_t *slash
    while place < end:
        slash = <const uint8_t *>memchr(text + place, b"/", end - place)
        if slash is NULL:
            break
        place = slash - text
        after[0] = _read_flags(text, place, end, flags)
        if after[0] != NO_ENTRY:
            return place
        place += 1
    return end


# Entries with addresses

cdef Py_ssize_t _skip_module(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, bint is_last
) noexcept nogil:
    """Index after `(path)`, which the other address or, if `is_last`, the flags must follow.

    `place` if they don't.
    """
    cdef Py_ssize_t i, after
    cdef uint64_t ignored
    for i in range(place + 1, min(end - 1, place + LONGEST_NAME)):
        if text[i] != b")" or text[i + 1] != b"/":
            continue
        if is_last:
            after = _read_flags(text, i + 1, end, &ignored)
        else:
            after = read_address(text, i + 2, end, &ignored)
        if after > i + 2:
            return i + 1
    return place


cdef inline Py_ssize_t _read_location(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, bint is_last, uint64_t *address
) noexcept nogil:
    """Read an address and the module behind it."""
    cdef Py_ssize_t after = read_address(text, place, end, address)
    if after > place and after < end and text[after] == b"(":
        return _skip_module(text, after, end, is_last)
    return after


cdef inline Py_ssize_t read_entry(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, EntryForm form, Entry *entry
) noexcept nogil:
    """Read an entry with addresses; NO_ENTRY, and `entry` as it may be, if none is here."""
    cdef Py_ssize_t target, after
    target = _read_location(text, place, end, False, &entry.source) + 1
    if target == place + 1 or target >= end or text[target - 1] != b"/":
        return NO_ENTRY
    after = _read_location(text, target, end, True, &entry.target)
    if after == target:
        return NO_ENTRY
    if form == FLAGGED_OR_BARE and (after == end or is_blank(text[after])):
        entry.flags = 0
        return after
    return _read_flags(text, after, end, &entry.flags)


cdef Py_ssize_t read_entries(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, EntryForm form,
    Entry *entries, Py_ssize_t room, Py_ssize_t *count,
) noexcept nogil:
    """Read entries with addresses, for which there is `room`; where they end.

    That may be at one that can't be read.
    """
    cdef Py_ssize_t after, n = 0
    while place < end and n < room:
        after = read_entry(text, place, end, form, &entries[n])
        if after == NO_ENTRY:
            break
        n += 1
        place = skip_blanks(text, after, end)
    count[0] = n
    return place


# Entries with symbols

cdef Py_ssize_t _module_end(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end
) noexcept nogil:
    """End of the `(path)` that starts here, `place` if it does not close.

    Parentheses in the path are taken to pair up.
    """
    cdef Py_ssize_t i, depth = 0
    for i in range(place, end):
        depth += (text[i] == b"(") - (text[i] == b")")
        if depth == 0:
            return i + 1
    return place


cdef bint _ends_with_module(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end
) noexcept nogil:
    """Whether nothing or `(path)` is here."""
    if place == end:
        return True
    return (
        text[place] == b"(" and text[end - 1] == b")" and _module_end(text, place, end) == end
    )


cdef bint _split_symbol(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, Symbol *symbol
) noexcept nogil:
    """Split `symbol+0x1c(/path)` in `text[place:end]`; whether that is sure.

    Not sure is a text without an offset, which is then all name. The name of `[unknown]` is empty.
    """
    cdef Py_ssize_t i, after
    symbol.start, symbol.end, symbol.offset = place, place, 0
    if starts_with(text, place, end, b"[unknown]", 9) and _ends_with_module(text, place + 9, end):
        return True
    for i in range(end - 4, place, -1):
        if text[i] == b"+" and text[i + 1] == b"0" and text[i + 2] == b"x":
            after = read_hex(text, i + 3, end, &symbol.offset)
            if after > i + 3 and _ends_with_module(text, after, end):
                symbol.end = i
                return True
    symbol.end, symbol.offset = end, 0
    return False


cdef Py_ssize_t _split_symbols(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end
) noexcept nogil:
    """Index of the slash between FROM and TO in `text[place:end]`, NO_ENTRY if there is none.

    It is the first that a complete symbol stands before; without one, the first.
    """
    cdef Py_ssize_t i, first = NO_ENTRY
    cdef Symbol symbol
    if end - place > 2 * LONGEST_NAME:
        return NO_ENTRY
    for i in range(place + 1, end - 1):
        if text[i] == b"/":
            if first == NO_ENTRY:
                first = i
            if _split_symbol(text, place, i, &symbol):
                return i
    return first


cdef Py_ssize_t read_symbols(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, SymbolEntry *entry
) noexcept nogil:
    """Read an entry with symbols; `place` if none is here, NO_ENTRY if it can't be read."""
    cdef Py_ssize_t middle, after
    cdef Py_ssize_t flags_start = _find_flags(text, place, end, &entry.flags, &after)
    if flags_start == end:
        return place
    middle = _split_symbols(text, place, flags_start)
    if middle == NO_ENTRY:
        return NO_ENTRY
    _split_symbol(text, place, middle, &entry.source)
    _split_symbol(text, middle + 1, flags_start, &entry.target)
    return after


# Kinds of lines

cdef inline bint _is_count(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end
) noexcept nogil:
    """Whether a line is nothing but a decimal number, which starts it.

    Behind a pid, which stands alone before the addresses of a call chain, perf prints a blank.
    """
    cdef Py_ssize_t here = place
    while here < end and is_digit(text[here]):
        here += 1
    return here > place and (here == end or text[here] == b"\r")


cdef LineKind _find_body(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, EntryForm form, Py_ssize_t *body
) noexcept nogil:
    """Find the first entry with addresses or the record's name: what it is, and where."""
    cdef Entry entry
    cdef int words
    for words in range(MOST_WORDS):
        place = skip_blanks(text, place, end)
        body[0] = place
        if place == end:
            break
        if read_entry(text, place, end, form, &entry) != NO_ENTRY:
            return STACK
        if starts_with(text, place, end, b"PERF_RECORD_", 12):
            return RECORD
        place = word_end(text, place, end)
    body[0] = end
    return PREFIX


cdef Py_ssize_t _glued_address_end(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, Py_ssize_t width
) noexcept nogil:
    """End of the address that fills `width` columns from here, `place` if there is none."""
    cdef Py_ssize_t i, start = skip_blanks(text, place, end), after = place + width
    if not start < after <= end:
        return place
    for i in range(start, after):
        if not is_hex_digit(text[i]):
            return place
    return after


cdef Py_ssize_t _location_end(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end
) noexcept nogil:
    """End of ` SYMBOL (DSO)` after a sample's address, `place` if that is not here."""
    cdef Py_ssize_t i
    if place >= end or text[place] != b" ":
        return place
    for i in range(place, end - 2):
        if text[i] == b" " and text[i + 1] == b"(" and text[i + 2] in b"/[":
            return _module_end(text, i + 1, end)
    return place


cdef bint _is_pid(const uint8_t *text, Py_ssize_t place, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(place, end):
        if not is_digit(text[i]) and not (text[i] == b"/" and i > place):
            return False
    return place < end


cdef Py_ssize_t _symbols_start(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end
) noexcept nogil:
    """Where the first symbol of a line starts, whose first entry ends at `end`.

    perf prints no blank between an address and the symbol after it (perf: builtin-script.c
    perf_sample__fprintf_brstacksym), so the address is told by its width.
    """
    cdef Py_ssize_t i, after, number, start = place, here
    for i in range(end - 2, place, -1):
        if text[i] == b":" and text[i + 1] == b" ":
            start = i + 1
            break
    here = start
    while True:
        # At the start of a line perf prints no blank before the columns of an address.
        after = _glued_address_end(text, here, end, ADDRESS_WIDTH + (here != place))
        if after > here:
            return _location_end(text, after, end)
        number = skip_blanks(text, here, end)
        after = word_end(text, number, end)
        if start > place or after >= end or not _is_pid(text, number, after):
            return number
        here = after


cdef LineKind classify(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, EntryForm form, Py_ssize_t *body
) noexcept nogil:
    """What the line `text[place:end]` is; its prefix ends at `body`."""
    cdef Py_ssize_t flags_start, after, start = skip_blanks(text, place, end)
    cdef uint64_t flags
    cdef LineKind kind
    body[0] = end
    if start == end:
        return NOTHING
    # `//` is how people remark on samples that they keep as test cases (LLVM's do).
    if text[start] == b"#" or starts_with(text, start, end, b"//", 2):
        return COMMENT
    if start == place and _is_count(text, place, end):
        return COUNT
    kind = _find_body(text, start, end, form, body)
    if kind == PREFIX:
        flags_start = _find_flags(text, start, end, &flags, &after)
        if flags_start < end:
            body[0] = _symbols_start(text, place, flags_start)
            return SYMBOLS
    return kind


# What stands before the stack

cdef struct Words:
    # Where the words of a prefix stand. An index of one below is less than `count`.
    Py_ssize_t count
    Py_ssize_t line
    Py_ssize_t start[MOST_WORDS]
    Py_ssize_t end[MOST_WORDS]


cdef void _split(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, Words *words
) noexcept nogil:
    """Find the words of a text, the first MOST_WORDS of them."""
    words.count = 0
    words.line = place
    place = skip_blanks(text, place, end)
    while place < end and words.count < MOST_WORDS:
        words.start[words.count] = place
        place = word_end(text, place, end)
        words.end[words.count] = place
        words.count += 1
        place = skip_blanks(text, place, end)


cdef bint _is_decimal(const uint8_t *text, Py_ssize_t place, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(place, end):
        if not is_digit(text[i]):
            return False
    return place < end


cdef bint _is_hex(const uint8_t *text, Py_ssize_t place, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t i
    if not 0 < end - place <= MOST_HEX_DIGITS:
        return False
    for i in range(place, end):
        if not is_hex_digit(text[i]):
            return False
    return True


cdef Py_ssize_t _width(const Words *words, Py_ssize_t i) noexcept nogil:
    """Columns that a word takes up, with the blanks before it."""
    return words.end[i] - (words.end[i - 1] if i > 0 else words.line)


cdef uint64_t _read_time(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end
) noexcept nogil:
    """Nanoseconds of `12.345678:`, NO_TIME if the word is none."""
    cdef uint64_t seconds, fraction
    cdef Py_ssize_t digits, after, dot = read_decimal(text, place, end, &seconds)
    if dot == place or dot >= end or text[dot] != b".":
        return NO_TIME
    after = read_decimal(text, dot + 1, end, &fraction)
    digits = after - dot - 1
    if not 0 < digits <= NANOSECOND_DIGITS or after + 1 != end or text[after] != b":":
        return NO_TIME
    for digits in range(digits, NANOSECOND_DIGITS):
        fraction *= 10
    return seconds * 10**9 + fraction


cdef Py_ssize_t _find_time(
    const uint8_t *text, const Words *words, Prefix *prefix
) noexcept nogil:
    """Index of the word that is the time, NO_WORD if there is none."""
    cdef Py_ssize_t i
    for i in range(words.count):
        prefix.time = _read_time(text, words.start[i], words.end[i])
        if prefix.time != NO_TIME:
            prefix.has_time = True
            return i
    return NO_WORD


cdef Py_ssize_t _find_event(
    const uint8_t *text, const Words *words, Py_ssize_t time
) noexcept nogil:
    """Index of the word that ends the event's name, NO_WORD if there is none."""
    cdef Py_ssize_t i, found = NO_WORD
    for i in range(time + 1, words.count):
        if text[words.end[i] - 1] == b":":
            found = i
            if time >= 0:
                break
    return found


cdef Py_ssize_t _name_start(
    const uint8_t *text, const Words *words, Py_ssize_t event, Py_ssize_t time
) noexcept nogil:
    """Index of the first word of the event's name, after a time and a period."""
    cdef Py_ssize_t first = time + 1
    if time >= 0:
        return first + (
            first < event and _is_decimal(text, words.start[first], words.end[first])
        )
    if event > 0 and starts_with(text, words.start[event - 1], words.start[event], b"raw ", 4):
        return event - 1
    return event


cdef void _set_event(
    const uint8_t *text, Py_ssize_t start, Py_ssize_t end, Prefix *prefix
) noexcept nogil:
    prefix.has_event = True
    prefix.event = hash_text(text, start, end)
    prefix.event_start = start
    prefix.event_end = end


cdef Py_ssize_t _find_wide_address(
    const uint8_t *text, const Words *words, Py_ssize_t first
) noexcept nogil:
    """Index of the first word that is as wide as perf prints addresses, or NO_WORD."""
    cdef Py_ssize_t i
    for i in range(first, words.count):
        if _width(words, i) >= ADDRESS_WIDTH and _is_hex(text, words.start[i], words.end[i]):
            return i
    return NO_WORD


cdef Py_ssize_t _find_narrow_address(
    const uint8_t *text, const Words *words, bint has_narrow_ips, Prefix *prefix
) noexcept nogil:
    """Index of the last word if it is an address rather than a pid, or NO_WORD.

    Text that was edited or trimmed lacks perf's blanks. A number with letters, or longer than a
    pid, is an address; any other is one if the file has such addresses.
    """
    cdef Py_ssize_t last = words.count - 1
    if last < 0 or not _is_hex(text, words.start[last], words.end[last]):
        return NO_WORD
    if last > 0 and not is_digit(text[words.end[last - 1] - 1]):
        return NO_WORD
    if (
        words.end[last] - words.start[last] <= PID_DIGITS
        and _is_decimal(text, words.start[last], words.end[last])
    ):
        return last if has_narrow_ips else NO_WORD
    prefix.is_narrow = True
    return last


cdef Py_ssize_t _find_address(
    const uint8_t *text, const Words *words, Py_ssize_t first, bint has_narrow_ips, Prefix *prefix
) noexcept nogil:
    """Index of the word that is the sample's address, NO_WORD if there is none."""
    cdef Py_ssize_t found = _find_wide_address(text, words, first)
    if found != NO_WORD:
        return found
    if first == 0:
        return _find_narrow_address(text, words, has_narrow_ips, prefix)
    if first < words.count and _is_hex(text, words.start[first], words.end[first]):
        return first
    return NO_WORD


cdef Py_ssize_t _find_source(
    const uint8_t *text, const Words *words, Py_ssize_t first
) noexcept nogil:
    """Index of the word `|OP` behind the number that it explains, NO_WORD if there is none."""
    cdef Py_ssize_t i
    for i in range(first + 1, words.count):
        if starts_with(text, words.start[i], words.end[i], b"|OP", 3):
            return i
    return NO_WORD


cdef Py_ssize_t _read_access(
    const uint8_t *text, const Words *words, Py_ssize_t first, Py_ssize_t number, Prefix *prefix
) noexcept nogil:
    """Read the data's source, which is the word `number`, and the address before it.

    Returns the index of their first word. No blank stands between the two, so they may be one word;
    one before the source tells that no address is printed.
    """
    cdef Py_ssize_t start = words.start[number], end = words.end[number]
    cdef Py_ssize_t found = number, address_end = end - DATA_WIDTH
    if start >= address_end:
        if number == first or _width(words, number) > DATA_WIDTH:
            return number
        found = number - 1
        address_end = words.end[found]
    else:
        start = address_end
    prefix.has_access = (
        read_hex(text, words.start[found], address_end, &prefix.address) == address_end
        and read_hex(text, start, end, &prefix.data_source) == end
    )
    if not prefix.has_access:
        prefix.address = prefix.data_source = 0
    return found


cdef bint _is_of_data(
    const uint8_t *text, const Words *words, Py_ssize_t first, Py_ssize_t i, Prefix *prefix
) noexcept nogil:
    """Whether an address is one of data, behind the time or the event, rather than the sample's.

    Then it lacks a blank: perf prints two before the sample's. One with all digits may lack it for
    having been edited, if no other address follows.
    """
    if not 0 < first <= i <= first + 1 or _width(words, i) != ADDRESS_WIDTH:
        return False
    prefix.may_be_of_data = (
        words.end[i] - words.start[i] == MOST_HEX_DIGITS
        and _find_wide_address(text, words, i + 1) == NO_WORD
    )
    return not prefix.may_be_of_data


cdef Py_ssize_t _find_ip_behind(
    const uint8_t *text, const Words *words, Py_ssize_t first, Prefix *prefix
) noexcept nogil:
    """Index of the sample's address behind what is told of its data, or NO_WORD.

    Weights stand before it, the first of which may be as wide.
    """
    cdef Py_ssize_t i, found = _find_wide_address(text, words, first)
    if found == NO_WORD:
        return NO_WORD
    i = found
    while (
        i + 1 < words.count and _is_decimal(text, words.start[i], words.end[i])
        and _width(words, i + 1) >= DATA_WIDTH
        and _is_hex(text, words.start[i + 1], words.end[i + 1])
    ):
        i += 1
    prefix.may_be_weight = (
        i == found == words.count - 1 and _is_decimal(text, words.start[i], words.end[i])
    )
    return i if _width(words, i) >= ADDRESS_WIDTH else NO_WORD


cdef bint _is_misc(const uint8_t *text, Py_ssize_t place, Py_ssize_t end) noexcept nogil:
    """Whether a word may be what `-F misc` prints: letters such as `U` or `KGH`."""
    cdef Py_ssize_t i
    for i in range(place, end):
        if not b"a" <= (text[i] | 0x20) <= b"z":
            return False
    return end - place <= LONGEST_MISC


cdef Py_ssize_t _read_number(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, int32_t *number
) noexcept nogil:
    """Read a pid, which is -1 for what no process did."""
    cdef uint64_t value
    cdef Py_ssize_t start = place + (place < end and text[place] == b"-")
    cdef Py_ssize_t after = read_decimal(text, start, end, &value)
    if after == start or value >> 31:
        return place
    number[0] = <int32_t>value if start == place else -1
    return after


cdef void _read_pid(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, Prefix *prefix
) noexcept nogil:
    """Read `PID/TID` or one number."""
    cdef int32_t pid = -1, tid = -1
    cdef Py_ssize_t start, after = _read_number(text, place, end, &pid)
    if after == place:
        return
    if after < end and text[after] == b"/":
        start = after + 1
        after = _read_number(text, start, end, &tid)
        if after == start:
            return
    if after == end:
        prefix.has_pid = True
        prefix.pid = pid
        prefix.tid = tid


cdef void _find_pid(
    const uint8_t *text, const Words *words, Py_ssize_t count, Prefix *prefix
) noexcept nogil:
    """Read the pid, the last of `count` words but for the flags and the number of the CPU."""
    cdef Py_ssize_t last = count - 1
    if last >= 0 and _is_misc(text, words.start[last], words.end[last]):
        last -= 1
    if last >= 0 and text[words.start[last]] == b"[":
        _read_number(text, words.start[last] + 1, words.end[last], &prefix.cpu)
        last -= 1
    if last >= 0:
        _read_pid(text, words.start[last], words.end[last], prefix)


cdef bint _is_period(const uint8_t *text, const Words *words, Py_ssize_t i) noexcept nogil:
    return (
        i >= 0
        and _width(words, i) >= PERIOD_WIDTH
        and _is_decimal(text, words.start[i], words.end[i])
    )


cdef Py_ssize_t read_prefix(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, bint has_narrow_ips, Prefix *prefix
) noexcept nogil:
    """Read the words of `text[place:end]`, which starts a line; how many there are.

    `has_narrow_ips` says whether a short lone number is an address (or else a pid), which only the
    whole file tells.
    """
    cdef Words words
    cdef Py_ssize_t time, event, first, source, ip, head, data = NO_WORD
    memset(prefix, 0, sizeof(Prefix))
    prefix.pid = prefix.tid = prefix.cpu = -1
    _split(text, place, end, &words)
    time = _find_time(text, &words, prefix)
    event = _find_event(text, &words, time)
    first = max(time, event) + 1
    source = _find_source(text, &words, first)
    if source == NO_WORD:
        ip = _find_address(text, &words, first, has_narrow_ips, prefix)
        if _is_of_data(text, &words, first, ip, prefix):
            data = ip
            ip = _find_ip_behind(text, &words, data + 1, prefix)
    else:
        data = _read_access(text, &words, first, source - 1, prefix)
        ip = _find_ip_behind(text, &words, source + 1, prefix)
    head = words.count
    if data != NO_WORD:
        prefix.has_data = True
        head = data
    elif ip != NO_WORD:
        head = ip
    if ip != NO_WORD:
        prefix.has_ip = True
        read_hex(text, words.start[ip], words.end[ip], &prefix.ip)
    if time == NO_WORD and ip == NO_WORD and data == NO_WORD and event < words.count - 1:
        event = NO_WORD  # a word with a colon in some other text
    if event != NO_WORD:
        head = _name_start(text, &words, event, time)
        _set_event(text, words.start[head], words.end[event] - 1, prefix)
        if time == NO_WORD and _is_period(text, &words, head - 1):
            head -= 1
    if time != NO_WORD:
        head = time
    _find_pid(text, &words, head, prefix)
    return words.count
