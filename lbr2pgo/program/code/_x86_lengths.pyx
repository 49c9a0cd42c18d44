"""Lengths of x86-64 instructions, as far as their first bytes leave no doubt.

Sources: Intel SDM vol. 2, chapter 2 and appendix A; Intel APX Architecture Specification, 3.1.

Nearly everything that Intel and AMD added in twenty years lives in opcode maps whose instructions
all have the same form: a ModRM byte, and in some an immediate. So the length of one that is newer
than this is known, too. APX puts the old integer instructions into EVEX map 4; map 7 holds MSR
accesses by a number of 32 bits.
"""

from libc.stdint cimport int16_t, int64_t, uint8_t

cdef enum:
    PADDING = 16
    LONGEST = 15
    MOST_PREFIXES = 9  # behind as many, a ModRM byte and its SIB byte still lie in the padding

cdef enum:
    # What follows a one-byte opcode. UNSURE: perhaps it is none.
    UNSURE, NOTHING, BYTE, WORD, WORD_BYTE, FULL, WHOLE, PLACE, DISTANCE
    MODRM, MODRM_BYTE, MODRM_FULL, GROUP_3

cdef enum:
    MAP_0F = 1
    MAP_0F38 = 2
    MAP_0F3A = 3
    MAP_APX = 4
    MAP_MSR = 7

cdef uint8_t[256] FORM
# The values of ModRM.reg that exist, bit by bit: where the operand is in memory or in a register,
# and where it is in memory and locked.
cdef uint8_t[256] MEMORY
cdef uint8_t[256] REGISTER
cdef uint8_t[256] LOCKED
cdef uint8_t[8][256] IS_X87  # by opcode and ModRM byte, where the operand is a register
cdef uint8_t[256] IS_ALONE_0F  # without a ModRM byte
cdef uint8_t[256] HAS_BYTE_0F
cdef uint8_t[256] IS_LOCKED_0F  # may be locked

_FORMS = {
    NOTHING: (*range(0x50, 0x60), *range(0x6C, 0x70), *range(0x90, 0x9A), *range(0x9B, 0xA0),
              *range(0xA4, 0xA8), *range(0xAA, 0xB0), 0xC3, 0xC9, 0xCB, 0xCC, 0xCF, 0xD7,
              *range(0xEC, 0xF0), 0xF1, 0xF4, 0xF5, *range(0xF8, 0xFE)),
    BYTE: (*range(0x04, 0x40, 8), 0x6A, *range(0x70, 0x80), 0xA8, *range(0xB0, 0xB8), 0xCD,
           *range(0xE0, 0xE8), 0xEB),
    WORD: (0xC2, 0xCA),
    WORD_BYTE: (0xC8,),
    FULL: (*range(0x05, 0x40, 8), 0x68, 0xA9),
    WHOLE: range(0xB8, 0xC0),
    PLACE: range(0xA0, 0xA4),
    DISTANCE: (0xE8, 0xE9),
    MODRM: (*(opcode for opcode in range(0x40) if opcode & 7 < 4), 0x63, *range(0x84, 0x90),
            *range(0xD0, 0xD4), *range(0xD8, 0xE0), 0xFE, 0xFF),
    MODRM_BYTE: (0x6B, 0x80, 0x83, 0xC0, 0xC1, 0xC6),
    MODRM_FULL: (0x69, 0x81, 0xC7),
    GROUP_3: (0xF6, 0xF7),
}
_IN_MEMORY = {0x8C: 0x3F, 0x8E: 0x3F, 0x8F: 0x01, 0xC6: 0x01, 0xC7: 0x01, 0xD9: 0xFD, 0xDB: 0xAF,
              0xDD: 0xDF, 0xFE: 0x03, 0xFF: 0x7F}
_IN_REGISTERS = {0x8C: 0x3F, 0x8D: 0x00, 0x8E: 0x3F, 0x8F: 0x01, 0xC6: 0x01, 0xC7: 0x01, 0xFE: 0x03,
                 0xFF: 0x57}
_LOCKED = {**dict.fromkeys((*range(0x00, 0x38, 8), *range(0x01, 0x38, 8), 0x86, 0x87), 0xFF),
           0x80: 0x7F, 0x81: 0x7F, 0x83: 0x7F, 0xF6: 0x0C, 0xF7: 0x0C, 0xFE: 0x03, 0xFF: 0x03}
_NO_X87 = {
    0xD9: (*range(0xD1, 0xD8), 0xE2, 0xE3, 0xE6, 0xE7, 0xEF),
    0xDA: (*range(0xE0, 0xE9), *range(0xEA, 0x100)),
    0xDB: (*range(0xE5, 0xE8), *range(0xF8, 0x100)),
    0xDC: range(0xD0, 0xE0),
    0xDD: (*range(0xC8, 0xD0), *range(0xF0, 0x100)),
    0xDE: (*range(0xD0, 0xD9), *range(0xDA, 0xE0)),
    0xDF: (*range(0xC8, 0xE0), *range(0xE1, 0xE8), *range(0xF8, 0x100)),
}
_ALONE_0F = (*range(0x05, 0x0A), 0x0B, 0x0E, *range(0x30, 0x36), 0x37, 0x77, *range(0xA0, 0xA3),
             *range(0xA8, 0xAB), *range(0xC8, 0xD0), 0xFF)
_LOCKED_0F = (0xAB, 0xB0, 0xB1, 0xB3, 0xBA, 0xBB, 0xC0, 0xC1, 0xC7)
_WITH_BYTE_0F = (*range(0x70, 0x74), 0xA4, 0xAC, 0xBA, 0xC2, *range(0xC4, 0xC7))


def _fill_tables():
    for opcode in range(256):
        MEMORY[opcode] = _IN_MEMORY.get(opcode, 0xFF)
        REGISTER[opcode] = _IN_REGISTERS.get(opcode, 0xFF)
        LOCKED[opcode] = _LOCKED.get(opcode, 0)
        IS_ALONE_0F[opcode] = opcode in _ALONE_0F
        HAS_BYTE_0F[opcode] = opcode in _WITH_BYTE_0F
        IS_LOCKED_0F[opcode] = opcode in _LOCKED_0F
    for opcode in range(0xD8, 0xE0):
        for modrm in range(0xC0, 0x100):
            IS_X87[opcode & 7][modrm] = modrm not in _NO_X87.get(opcode, ())
    for form, opcodes in _FORMS.items():
        for opcode in opcodes:
            FORM[opcode] = form


_fill_tables()


cdef struct Prefixes:
    bint word  # 66: operands of 16 bits
    bint narrow  # 67: addresses of 32 bits
    bint repeated  # F2 or F3
    bint locked
    bint wide  # REX.W: operands of 64 bits


cdef inline int _operand(const uint8_t* modrm) noexcept nogil:
    """Bytes of a ModRM byte with its SIB byte and displacement."""
    cdef int mode = modrm[0] >> 6, base = modrm[0] & 7, size = 1
    if mode == 3:
        return 1
    if base == 4:
        base, size = modrm[1] & 7, 2
    if mode == 0:
        return size + 4 if base == 5 else size
    return size + (1 if mode == 1 else 4)


cdef inline bint _is_known(const uint8_t* opcode, const Prefixes* has) noexcept nogil:
    """Whether the ModRM byte names an instruction that is there, and may be locked if it is."""
    cdef int reg = opcode[1] >> 3 & 7
    if opcode[1] >> 6 < 3:
        return (LOCKED[opcode[0]] if has.locked else MEMORY[opcode[0]]) >> reg & 1
    if has.locked:
        return False
    if opcode[0] & 0xF8 == 0xD8:
        return IS_X87[opcode[0] & 7][opcode[1]]
    return REGISTER[opcode[0]] >> reg & 1


cdef inline int _behind_one_byte(const uint8_t* opcode, const Prefixes* has) noexcept nogil:
    """Bytes behind a one-byte opcode, -1 if unsure."""
    cdef int form = FORM[opcode[0]], full = 2 if has.word and not has.wide else 4
    if form >= MODRM:
        if not _is_known(opcode, has):
            return -1
        if form == GROUP_3 and opcode[1] >> 3 & 7 < 2:  # test
            form = MODRM_BYTE if opcode[0] == 0xF6 else MODRM_FULL
        return _operand(opcode + 1) + (
            1 if form == MODRM_BYTE else full if form == MODRM_FULL else 0
        )
    if has.locked or form == UNSURE:
        return -1
    if form == NOTHING:
        return 0
    if form == BYTE:
        return 1
    if form == FULL:
        return full
    if form == DISTANCE:
        return 4
    if form == WHOLE:
        return 8 if has.wide else full
    if form == PLACE:
        return 4 if has.narrow else 8
    return 3 if form == WORD_BYTE else 2


cdef inline int _length_0f(const uint8_t* code, int at, const Prefixes* has) noexcept nogil:
    """Length of an instruction whose opcode behind the escape 0F is at `at`."""
    cdef uint8_t opcode = code[at]
    cdef bint has_mandatory = has.word or has.repeated
    if has.locked and not IS_LOCKED_0F[opcode] or opcode == 0x0F:  # 3DNow's come last
        return 0
    if opcode == 0x38 or opcode == 0x3A:
        return at + 2 + _operand(code + at + 2) + (opcode == 0x3A)
    if (opcode == 0x77 or opcode == 0x78) and has_mandatory:
        return 0  # extrq and insertq have two immediates
    if IS_ALONE_0F[opcode]:
        return at + 1
    if opcode & 0xF0 == 0x80:
        return 0 if has.word else at + 5
    if opcode & 0xFC == 0x20:  # control and debug registers, whatever ModRM.mod says
        return at + 2
    return at + 1 + _operand(code + at + 1) + HAS_BYTE_0F[opcode]


cdef inline int _length_vector(const uint8_t* code, int at, int opcode_map) noexcept nogil:
    """Length of an instruction whose opcode behind VEX or EVEX is at `at`."""
    cdef uint8_t opcode = code[at]
    cdef int length = at + 1 + _operand(code + at + 1)
    if opcode_map == MAP_0F:
        return at + 1 if opcode == 0x77 else length + HAS_BYTE_0F[opcode]
    if opcode_map == MAP_0F3A:
        return length + 1
    return length + 4 if opcode_map == MAP_MSR else length


cdef inline int _length_apx(const uint8_t* code, int at) noexcept nogil:
    """Length of an instruction in EVEX map 4, whose opcode is at `at`."""
    cdef uint8_t opcode = code[at]
    cdef int length = at + 1 + _operand(code + at + 1)
    cdef bint is_test = opcode & 0xFE == 0xF6 and code[at + 1] & 0x30 == 0
    if opcode in (0x24, 0x2C, 0x6B, 0x80, 0x83, 0xC0, 0xC1) or is_test and opcode == 0xF6:
        return length + 1
    if opcode == 0x69 or opcode == 0x81 or is_test:
        return length + (2 if code[at - 2] & 3 == 1 else 4)  # EVEX.pp says 66: 16-bit operands
    return length


cdef inline int _length(const uint8_t* code) noexcept nogil:
    """Length of the instruction at the start of some bytes, 0 if unsure."""
    cdef Prefixes has = Prefixes(False, False, False, False, False)
    cdef int at = 0, behind, opcode_map
    cdef uint8_t byte = code[0]
    while at < MOST_PREFIXES:
        if byte == 0x66:
            has.word = True
        elif byte == 0x67:
            has.narrow = True
        elif byte == 0xF0:
            has.locked = True
        elif byte == 0xF2 or byte == 0xF3:
            has.repeated = True
        elif byte & 0xE7 != 0x26 and byte & 0xFE != 0x64:  # no segment's either
            break
        at += 1
        byte = code[at]
    if byte & 0xF0 == 0x40:
        has.wide = byte >> 3 & 1
        at += 1
        byte = code[at]
    if byte == 0x0F:
        return _length_0f(code, at + 1, &has)
    if byte == 0xC5:
        return _length_vector(code, at + 2, MAP_0F)
    if byte == 0xC4:
        opcode_map = code[at + 1] & 0x1F
        if MAP_0F <= opcode_map <= MAP_0F3A or opcode_map == MAP_MSR:
            return _length_vector(code, at + 3, opcode_map)
        return 0
    if byte == 0x62:
        opcode_map = code[at + 1] & 7
        if opcode_map == MAP_APX:
            return _length_apx(code, at + 4)
        return _length_vector(code, at + 4, opcode_map) if opcode_map else 0
    if (
        (byte == 0x63 and has.narrow)
        or (byte == 0x90 and has.word and has.repeated)
        or (byte == 0xC2 and has.word)
    ):
        return 0  # disassemblers differ
    behind = _behind_one_byte(code + at, &has)
    return at + 1 + behind if behind >= 0 else 0


def known_lengths(
    const uint8_t[::1] data,
    const int64_t[::1] bounds,
    Py_ssize_t piece,
    Py_ssize_t at,
    int16_t[::1] sizes,
):
    cdef Py_ssize_t count = 0, pieces = bounds.shape[0] - 1, room = sizes.shape[0]
    cdef Py_ssize_t end, limit = data.shape[0] - PADDING
    cdef int length = 1
    with nogil:
        while piece < pieces and length and count < room:
            end = bounds[piece + 1]
            if not 0 <= at <= end <= limit:
                with gil:
                    raise IndexError("pieces don't ascend, or end behind the data")
            while at < end and count < room:
                length = _length(&data[at])  # which reads 17 bytes at most
                if length == 0 or length > LONGEST or at + length > end:
                    length = 0
                    break
                sizes[count] = length
                count += 1
                at += length
            if at == end:
                piece += 1
    return piece, at, count
