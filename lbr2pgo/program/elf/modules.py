"""Kernel modules, which are object files: linked here as the kernel lays them out.

The kernel puts the executable sections one behind the other, in the order of the file, and what
else stays in memory behind them; sections of the module's beginning (`.init…`) go elsewhere
(Linux: kernel/module/main.c, layout_sections, v6.1). A recording names where the first one is.

What comes out is an ELF file like any other: sections with addresses, symbols at addresses, and
relocations applied where what they refer to is in the module, in debug information too.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

import numpy as np

from lbr2pgo.program.elf.file import File, FileInMemory
from lbr2pgo.program.elf.packing import unpack
from lbr2pgo.support.arrays import I64, U8, U64, Bools, Records
from lbr2pgo.support.dataclass import dataclass

BASE = 0x1000
"""Where the first executable section is linked: at 0 nothing would tell it from what is missing."""

ET_REL, ET_DYN = 1, 3
MARKS = (".modinfo", ".gnu.linkonce.this_module")
"""Sections that make an object file a module, or its debug file (Linux: scripts/mod/modpost.c)."""
_RAW_MARKS = tuple(mark.encode() for mark in MARKS)
_PAGE = 0x1000
_LARGEST_ALIGN, _LAST, _MOST_BYTES = 1 << 21, 1 << 40, 1 << 30
"""Bounds of what a damaged file can say; real ones stay far below."""
_PT_LOAD, _R, _RX = 1, 4, 5
_SHT_SYMTAB, _SHT_RELA, _SHT_NOBITS = 2, 4, 8
_ALLOC, _EXEC, _COMPRESSED = 2, 4, 1 << 11
_SHN_RESERVED = 0xFF00
_ELF = Struct("<16sHHIQQQIHHHHHH")
_PROGRAM_HEADER = Struct("<IIQQQQQQ")
_SECTION = np.dtype(
    [("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("address", "<u8"), ("offset", "<u8"),
     ("size", "<u8"), ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("entry", "<u8")]
)  # fmt: skip
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"),
     ("size", "<u8")]
)  # fmt: skip
_RELA = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])


@dataclass(frozen=True, slots=True)
class _Field:
    """What a relocation writes: so many bits of a value, `shift` bits less, from bit `low` on."""

    size: int
    is_relative: bool
    bits: int = 0
    """0 for all of its bytes."""
    low: int = 0
    shift: int = 0


_FIELDS = {
    62: {  # x86-64 psABI, table 4.9
        1: _Field(8, False), 2: _Field(4, True), 4: _Field(4, True), 10: _Field(4, False),
        11: _Field(4, False), 24: _Field(8, True),
    },
    183: {  # ELF for the Arm 64-bit Architecture, relocation
        257: _Field(8, False), 258: _Field(4, False), 260: _Field(8, True), 261: _Field(4, True),
        279: _Field(4, True, 14, 5, 2), 280: _Field(4, True, 19, 5, 2),
        282: _Field(4, True, 26, 0, 2), 283: _Field(4, True, 26, 0, 2),
    },
}  # fmt: skip
"""By machine and type; others leave what is there: they are of data that nothing here looks at."""


def linked(file: File) -> File:
    """A kernel module as if it had been linked; any other file as it is."""
    head = file.read(0, _ELF.size)
    if len(head) < _ELF.size or head[:6] != b"\x7fELF\2\1" or _ELF.unpack(head)[1] != ET_REL:
        return file
    content = file.read(0, file.size)
    module = _Module(bytearray(content), _ELF.unpack(head))
    return FileInMemory(file.path, module.linked()) if module.is_one else file


class _Module:
    """The bytes of a module, changed in place; what does not fit the file is left alone."""

    def __init__(self, data: bytearray, header: tuple[int, ...]) -> None:
        self.data = data
        self._header = list(header)
        machine, table, count, names = header[2], header[6], header[12], header[13]
        self._fields = _FIELDS.get(machine, {})
        room = max(0, len(data) - table) // _SECTION.itemsize
        table = table if room else 0  # one behind the file's end is empty, wherever it is
        self._sections: Records = np.frombuffer(data, _SECTION, min(count, room), table).copy()
        self._names = self._content(names) if names < len(self._sections) else b""

    @property
    def is_one(self) -> bool:
        """Whether the object file says that it is a module."""
        return any(self._name(row) in _RAW_MARKS for row in range(len(self._sections)))

    def linked(self) -> bytes:
        self._place()
        self._unpack()
        symbols = {
            row: self._link_symbols(row)
            for row in np.flatnonzero(self._sections["type"] == _SHT_SYMTAB).tolist()
        }
        for row in np.flatnonzero(self._sections["type"] == _SHT_RELA).tolist():
            table = symbols.get(int(self._sections["link"][row]))
            if table is not None and self._sections["info"][row] < len(self._sections):
                self._relocate(row, int(self._sections["info"][row]), *table)
        return self._finished()

    def _name(self, row: int) -> bytes:
        at = int(self._sections["name"][row])
        return self._names[at : self._names.find(b"\0", at)]

    def _is_init(self, row: int) -> bool:
        return self._name(row).startswith(b".init")

    def _content(self, row: int) -> bytes:
        section = self._sections[row]
        if section["type"] == _SHT_NOBITS:
            return b""
        start = int(section["offset"])
        return bytes(self.data[start : start + int(section["size"])])

    def _place(self) -> None:
        """Give every section that stays in memory its address."""
        flags = self._sections["flags"]
        stays = flags & np.uint64(_ALLOC) != 0
        is_first = np.array([self._is_init(row) for row in range(len(flags))], np.bool_)
        is_code = flags & np.uint64(_EXEC) != 0
        at = BASE
        for chosen in (is_code & ~is_first, ~is_code & ~is_first, is_first):
            for row in np.flatnonzero(stays & chosen).tolist():
                align = min(max(1, int(self._sections["align"][row])), _LARGEST_ALIGN)
                at = -(-at // align) * align
                self._sections["address"][row] = at
                at = min(at + int(self._sections["size"][row]), _LAST)
            at = -(-at // _PAGE) * _PAGE

    def _unpack(self) -> None:
        """Put packed debug information, unpacked, behind the file: it is relocated so."""
        for row in np.flatnonzero(self._sections["flags"] & np.uint64(_COMPRESSED)).tolist():
            if len(self.data) > _MOST_BYTES:
                break
            try:
                plain = unpack(memoryview(self._content(row)))
            except ValueError:
                continue  # whoever wants it will say so
            section = self._sections[row]
            section["offset"], section["size"] = self._append(bytes(plain)), len(plain)
            section["flags"] &= ~np.uint64(_COMPRESSED)

    def _append(self, content: bytes) -> int:
        self.data += bytes(-len(self.data) % 8)
        self.data += content
        return len(self.data) - len(content)

    def _link_symbols(self, row: int) -> tuple[U64, Bools]:
        """Make values addresses; returns them, and which are known."""
        start = int(self._sections["offset"][row])
        content = self._content(row)
        table = np.frombuffer(content, _SYMBOL, len(content) // _SYMBOL.itemsize).copy()
        section = table["section"].astype(np.int64)
        is_here = (section > 0) & (section < min(len(self._sections), _SHN_RESERVED))
        table["value"][is_here] += self._sections["address"][section[is_here]]
        self.data[start : start + table.nbytes] = table.tobytes()
        return table["value"], is_here

    def _relocate(self, row: int, target: int, values: U64, known: Bools) -> None:
        section = self._sections[target]
        if section["type"] == _SHT_NOBITS:
            return
        content = self._content(row)
        rows = np.frombuffer(content, _RELA, len(content) // _RELA.itemsize)
        rows = rows[rows["symbol"] < len(values)]
        rows = rows[known[rows["symbol"]]]
        size = len(self._content(target))
        data = np.frombuffer(self.data, np.uint8)

        def fits(width: int) -> Bools:
            """Also of offsets near the last one that 64 bits hold."""
            fitting: Bools = (rows["offset"] < size) & (rows["offset"] + np.uint64(width) <= size)
            return fitting

        for kind, form in self._fields.items():
            own = rows[(rows["type"] == kind) & fits(form.size)]
            value = values[own["symbol"]] + own["addend"].astype(np.uint64)
            if form.is_relative:
                value = value - section["address"] - own["offset"]
            at = (section["offset"] + own["offset"]).astype(np.int64)
            _write(data, at, value, form)

    def _finished(self) -> bytes:
        loads = b"".join(self._loads())
        programs = self._append(loads)
        self._header[1], self._header[5] = ET_DYN, programs
        self._header[9], self._header[10] = _PROGRAM_HEADER.size, len(loads) // _PROGRAM_HEADER.size
        self.data[: _ELF.size] = _ELF.pack(*self._header)
        table = self._header[6]
        self.data[table : table + self._sections.nbytes] = self._sections.tobytes()
        return bytes(self.data)

    def _loads(self) -> Iterator[bytes]:
        """A segment for each section in memory; code is what the recorded address is of."""
        for row, section in enumerate(self._sections):
            if int(section["flags"]) & _ALLOC and section["size"]:
                is_code = int(section["flags"]) & _EXEC and not self._is_init(row)
                size = int(section["size"])
                stored = 0 if section["type"] == _SHT_NOBITS else size
                address = int(section["address"])
                yield _PROGRAM_HEADER.pack(
                    _PT_LOAD, _RX if is_code else _R, int(section["offset"]), address, address,
                    stored, size, 1,
                )  # fmt: skip


def _write(data: U8, at: I64, value: U64, form: _Field) -> None:
    """Store values at places of the data; no two of them overlap."""
    place = at[:, np.newaxis] + np.arange(form.size)
    if form.bits:
        mask = np.uint64(((1 << form.bits) - 1) << form.low)
        before = np.zeros((len(at), 8), np.uint8)
        before[:, : form.size] = data[place]
        value = before.view("<u8")[:, 0] & ~mask | (
            (value >> np.uint64(form.shift)) << np.uint64(form.low) & mask
        )
    data[place] = np.ascontiguousarray(value).view(np.uint8).reshape(-1, 8)[:, : form.size]
