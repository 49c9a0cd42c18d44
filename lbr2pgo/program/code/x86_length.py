"""Length of x86-64 instructions newer than the disassembler.

Nearly everything that Intel and AMD added in twenty years lives in opcode maps whose instructions
all have the same form: a ModRM byte, and in some an immediate. So the length of an unknown one is
known (Intel SDM vol. 2, 2.1 to 2.3 and 2.7; AVX512-FP16 for EVEX maps 5 and 6). APX puts the
old integer instructions into EVEX map 4, and before them a REX2 prefix in place of REX (Intel APX
Architecture Specification, 3.1.1 and 3.1.2); map 7 holds MSR accesses by a number of 32 bits.
"""

from __future__ import annotations

_PREFIXES = frozenset((0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3))
_REX = range(0x40, 0x50)
_REX2 = 0xD5
_MAP_0F, _MAP_0F3A, _MAP_APX, _MAP_MSR = 1, 3, 4, 7
_VEX_MAPS, _EVEX_MAPS = (1, 2, 3, 7), (1, 2, 3, 4, 5, 6, 7)
_IMMEDIATE_BYTE = {
    _MAP_0F: (0x70, 0x71, 0x72, 0x73, 0xA4, 0xAC, 0xBA, 0xC2, 0xC4, 0xC5, 0xC6),
    _MAP_0F3A: range(0x100),
    _MAP_APX: (0x24, 0x2C, 0x6B, 0x80, 0x83, 0xC0, 0xC1),
}
_IMMEDIATE_WORD = (0x69, 0x81)
_GROUP_3 = (0xF6, 0xF7)
_LONGEST = 15


def vector_length(code: bytes) -> int:
    """Bytes of the instruction that `code` starts with, 0 if it is of no such map or is cut."""
    try:
        at, opcode_map = _opcode(code)
        if opcode_map == 0:
            return 0
        length = at + 1 + _operand_size(code[at + 1 :]) + _immediate_size(code, at, opcode_map)
    except IndexError:
        return 0
    return length if length <= min(len(code), _LONGEST) else 0


def without_rex2(code: bytes) -> bytes | None:
    """The instruction with the REX prefix, and escape, that do what its REX2 prefix does.

    Registers come out wrong, lengths right. None if there is no REX2 prefix.
    """
    at = _behind_prefixes(code)
    if code[at : at + 1] != bytes([_REX2]) or len(code) < at + 2:
        return None
    payload = code[at + 1]
    rex = bytes([_REX.start | payload & 0xF])
    return code[:at] + rex + (b"\x0f" if payload & 0x80 else b"") + code[at + 2 :]


def _behind_prefixes(code: bytes) -> int:
    return len(code) - len(code.lstrip(bytes(_PREFIXES)))


def _immediate_size(code: bytes, at: int, opcode_map: int) -> int:
    opcode = code[at]
    if opcode in _IMMEDIATE_BYTE.get(opcode_map, ()):
        return 1
    if opcode_map == _MAP_MSR:
        return 4
    is_test = opcode in _GROUP_3 and code[at + 1] & 0x30 == 0
    if opcode_map != _MAP_APX or not (is_test or opcode in _IMMEDIATE_WORD):
        return 0
    if opcode == _GROUP_3[0]:
        return 1
    return 2 if code[at - 2] & 3 == 1 else 4  # EVEX.pp says 66: 16-bit operands


def _opcode(code: bytes) -> tuple[int, int]:
    """Where the opcode stands and its map, (0, 0) for the maps that capstone knows whole."""
    at = _behind_prefixes(code)
    if code[at] in _REX:
        at += 1
    lead = code[at]
    if lead == 0xC5:
        return at + 2, _MAP_0F
    if lead == 0xC4:
        return _if_known(at + 3, code[at + 1] & 0x1F, _VEX_MAPS)
    if lead == 0x62:
        return _if_known(at + 4, code[at + 1] & 7, _EVEX_MAPS)
    if lead != 0x0F:
        return 0, 0
    escape = {0x38: 2, 0x3A: _MAP_0F3A}.get(code[at + 1])
    return (at + 2, escape) if escape else (at + 1, _MAP_0F)


def _if_known(at: int, opcode_map: int, maps: tuple[int, ...]) -> tuple[int, int]:
    return (at, opcode_map) if opcode_map in maps else (0, 0)


def _operand_size(code: bytes) -> int:
    """Bytes of a ModRM byte with its SIB byte and displacement."""
    mode, register = code[0] >> 6, code[0] & 7
    if mode == 3:
        return 1
    has_sib = register == 4
    base = code[1] & 7 if has_sib else register
    displacement = (4 if base == 5 else 0, 1, 4)[mode]
    return 1 + has_sib + displacement
