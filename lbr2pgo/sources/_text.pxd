"""Numbers, words and lines in bytes of text: the small steps that all readers of text share.

A place is an index into `text`, and `end` is where the line or the text ends. Steps read at places
below `end` only, and who takes the pointer from a memoryview sees to it that `end` is not behind
the memoryview's: so a bare pointer is safe here, and a step is a few instructions. Steps that read
something return where it ends, which is where they started if it was not there.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memchr, memcmp

from lbr2pgo.sources._words cimport WORD, word_at

cdef extern from *:
    """
    /* One more than the value of each hexadecimal digit, and 0 for all other bytes. */
    static const unsigned char lbr2pgo_hex_digits[256] = {
        ['0'] = 1, ['1'] = 2, ['2'] = 3, ['3'] = 4, ['4'] = 5, ['5'] = 6, ['6'] = 7, ['7'] = 8,
        ['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15,
        ['f'] = 16, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
    };
    """
    const uint8_t *HEX_DIGITS "lbr2pgo_hex_digits"

cdef enum:
    NEWLINE = 10


cdef inline Py_ssize_t line_end(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end
) noexcept nogil:
    """Index of the next newline, `end` if there is none."""
    cdef const uint8_t *found = <const uint8_t *>memchr(text + place, NEWLINE, end - place)
    return end if found is NULL else found - text


cdef inline bint is_blank(uint8_t byte) noexcept nogil:
    """Whether a byte separates words: a blank, a tab and the like, or a DOS line's return."""
    return byte == b" " or (b"\t" <= byte <= b"\r" and byte != NEWLINE)


cdef inline Py_ssize_t skip_blanks(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end
) noexcept nogil:
    """Index of the next byte that is no blank."""
    while place < end and is_blank(text[place]):
        place += 1
    return place


cdef inline Py_ssize_t word_end(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end
) noexcept nogil:
    """Index after the word that starts here."""
    while place < end and not is_blank(text[place]):
        place += 1
    return place


cdef inline bint starts_with(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, const char *word, Py_ssize_t size
) noexcept nogil:
    """Whether the `size` bytes of `word` stand here."""
    return end - place >= size and memcmp(text + place, word, size) == 0


cdef inline bint is_digit(uint8_t byte) noexcept nogil:
    """Whether a byte is a decimal digit."""
    return b"0" <= byte <= b"9"


cdef inline bint is_hex_digit(uint8_t byte) noexcept nogil:
    """Whether a byte is a hexadecimal digit of either case."""
    return HEX_DIGITS[byte] != 0


cdef inline bint _are_digits(uint64_t word, uint64_t *digits) noexcept nogil:
    """Whether all of eight bytes are hexadecimal digits, letters small ones; each one's value.

    Letters differ from 0 to 9 in the bit that is shifted down, and follow on them once what lies
    between is taken away. A value is less than 16, and with 6 more it is not if it is a letter's.
    """
    cdef uint64_t ones = 0x0101010101010101ULL, letters = (word >> 6) & ones
    digits[0] = (word - 0x27 * letters) ^ (0x30 * ones)
    return (digits[0] | ((digits[0] + 6 * ones) ^ (letters << 4))) & (0xF0 * ones) == 0


cdef inline uint64_t _number(uint64_t digits) noexcept nogil:
    """The number that eight digits make: neighbours are joined, then pairs of them, then fours."""
    digits = (digits << 12 | digits) >> 8 & 0x00FF00FF00FF00FFULL
    digits = (digits << 24 | digits) >> 16 & 0x0000FFFF0000FFFFULL
    return (digits << 48 | digits) >> 32


cdef inline Py_ssize_t read_hex(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, uint64_t *value
) noexcept nogil:
    """Read hexadecimal digits; none are read if they make more than 64 bits.

    Most of a text are addresses of more than eight digits, and the first eight are read at once.
    """
    cdef uint64_t digits, digit, number = 0
    cdef Py_ssize_t here = place
    value[0] = 0
    if end - here >= WORD and _are_digits(word_at(text + here), &digits):
        number = _number(digits)
        here += WORD
    while here < end:
        digit = HEX_DIGITS[text[here]]
        if digit == 0:
            break
        if number >> 60:
            return place
        number = (number << 4) + digit - 1
        here += 1
    value[0] = number
    return here


cdef inline Py_ssize_t read_decimal(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, uint64_t *value
) noexcept nogil:
    """Read decimal digits; none are read if they make more than about 64 bits."""
    cdef uint64_t most = (<uint64_t>-1 - 9) // 10
    cdef uint64_t number = 0
    cdef Py_ssize_t here = place
    value[0] = 0
    while here < end and is_digit(text[here]):
        if number > most:
            return place
        number = number * 10 + (text[here] & 0x0F)
        here += 1
    value[0] = number
    return here


cdef inline Py_ssize_t read_address(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end, uint64_t *value
) noexcept nogil:
    """Read `0x` and hexadecimal digits."""
    cdef Py_ssize_t after
    if place + 2 < end and text[place] == b"0" and text[place + 1] == b"x":
        after = read_hex(text, place + 2, end, value)
        if after > place + 2:
            return after
    return place


cdef inline uint64_t hash_text(
    const uint8_t *text, Py_ssize_t place, Py_ssize_t end
) noexcept nogil:
    """A hash of `text[place:end]`, by which names are told apart: FNV-1a, 64 bits."""
    cdef uint64_t value = 0xCBF29CE484222325ULL, prime = 0x100000001B3ULL
    while place < end:
        value = (value ^ text[place]) * prime
        place += 1
    return value
