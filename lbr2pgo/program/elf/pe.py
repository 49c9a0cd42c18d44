"""PE programs with DWARF (MinGW, clang), as the ELF files that they would be.

The content stays where it is: an ELF header takes the place of the MS-DOS header, which is as
long, and the tables that it points to stand behind the file. Addresses hold the preferred base, as
DWARF's do. Sections and symbols are LIEF's; symbols have no sizes in COFF: functions reach to the
next one.

Sources: Microsoft: PE Format; LLVM: llvm/tools/llvm-profgen/ProfiledBinary.cpp (COFF).
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from struct import Struct, error
from typing import Any

from lbr2pgo.program.elf.file import File, FileInMemory
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

_MAGIC, _KERNEL_AT, _KERNEL = b"MZ", 0x202, b"HdrS"  # Linux: Documentation/x86/boot.rst
_MACHINES = {0x8664: 62, 0xAA64: 183}
"""IMAGE_FILE_MACHINE_* to EM_*."""
_EXECUTABLE, _WRITABLE, _DISCARDABLE = 1 << 29, 1 << 31, 1 << 25
_ET_EXEC, _ET_DYN = 2, 3
_HEADER_AT = 0x3C
"""Where a PE file has the place of its header, whose first number but one is the machine's."""
_HEADER = Struct("<16sHHIQQQIHHHHHH")
_PROGRAM = Struct("<IIQQQQQQ")
_SECTION = Struct("<IIQQQQIIQQ")
_SYMBOL = Struct("<IBBHQQ")
_PROGBITS, _SYMTAB, _STRTAB, _NOBITS = 1, 2, 3, 8
_ALLOC, _EXEC = 2, 4
_MOST_SECTIONS = 0xFEFF


def as_elf(file: File) -> File:
    """A PE program as ELF, any other file as it is.

    Raises InputError for a PE file that can't be used: without DWARF, say.
    """
    if file.read(0, len(_MAGIC)) != _MAGIC:
        return file
    if file.read(_KERNEL_AT, len(_KERNEL)) == _KERNEL:
        raise InputError(
            "is a packed kernel (bzImage), without symbols",
            where=file.path,
            cure="Give vmlinux as the kernel's build leaves it.",
        )
    import lief

    content = file.read(0, file.size)
    lief.logging.disable()
    program = lief.PE.parse(io.BytesIO(content))
    if not isinstance(program, lief.PE.Binary):
        raise InputError(
            "begins like a PE program, and is none", where=file.path, cure="Copy it again."
        )
    try:
        return FileInMemory(file.path, _Converted(file.path, content, program).elf())
    except (error, UnicodeDecodeError) as failure:  # addresses of more than 64 bits; LIEF of names
        raise InputError(
            "is a damaged PE program", where=file.path, cure="Copy it again."
        ) from failure


@dataclass(frozen=True, slots=True)
class _Part:
    """One section."""

    name: str
    address: int
    size: int
    offset: int
    stored: int
    flags: int

    @property
    def is_debug(self) -> bool:
        return self.name.startswith(".debug_")


class _Converted:
    """Makes the tables of the ELF file."""

    def __init__(self, path: str, content: bytes, program: Any) -> None:
        self._path, self._data, self._program = path, bytearray(content), program
        self._base = int(program.optional_header.imagebase)
        self._parts = [self._part(section) for section in program.sections][:_MOST_SECTIONS]
        if all(part.name != ".debug_info" for part in self._parts):
            pdb = program.codeview_pdb
            raise InputError(
                "is a PE program without DWARF"
                + (f"; its debug information is in {pdb.filename}" if pdb is not None else ""),
                where=path,
                cure="Build it with DWARF: MinGW and clang with -g, clang-cl with -gdwarf.",
            )

    def _part(self, section: Any) -> _Part:
        long_name = section.coff_string
        name = _text(long_name.string if long_name is not None else section.name)
        size = min(section.virtual_size or section.size, 1 << 40)
        room = max(0, len(self._data) - section.pointerto_raw_data)
        return _Part(
            name, self._base + section.virtual_address, size, section.pointerto_raw_data,
            min(size, section.size, room), section.characteristics,
        )  # fmt: skip

    def elf(self) -> bytes:
        header = int.from_bytes(self._data[_HEADER_AT : _HEADER_AT + 4], "little")
        number = int.from_bytes(self._data[header + 4 : header + 6], "little")
        machine = _MACHINES.get(number)  # LIEF has warnings for what it has no name for
        if machine is None:
            raise InputError(
                f"is a PE program for another machine ({number:#x})",
                where=self._path,
                cure="Programs for x86-64 and AArch64 can be read.",
            )
        loads = b"".join(self._loads())
        programs = self._append(loads)
        symbols, strings = self._symbols()
        names, rows = b"\0", [bytes(_SECTION.size)]
        for part in self._parts:
            rows.append(_row(len(names), part))
            names += part.name.encode() + b"\0"
        number = len(rows)
        tables = ((_SYMTAB, symbols, number + 1, 1, 24), (_STRTAB, strings, 0, 0, 0),
                  (_STRTAB, names + b".tables\0", 0, 0, 0))  # fmt: skip
        for kind, content, link, info, entry in tables:
            at = self._append(content)
            rows.append(
                _SECTION.pack(len(names), kind, 0, 0, at, len(content), link, info, 8, entry)
            )
        headers = self._append(b"".join(rows))
        kind = _ET_DYN if self._program.is_pie else _ET_EXEC
        self._data[: _HEADER.size] = _HEADER.pack(
            b"\x7fELF\2\1\1", kind, machine, 1, 0, programs, headers, 0, _HEADER.size,
            _PROGRAM.size, len(loads) // _PROGRAM.size, _SECTION.size, len(rows), len(rows) - 1,
        )  # fmt: skip
        return bytes(self._data)

    def _append(self, content: bytes) -> int:
        self._data += bytes(-len(self._data) % 8)
        self._data += content
        return len(self._data) - len(content)

    def _loads(self) -> Iterator[bytes]:
        for part in self._parts:
            if not part.flags & _DISCARDABLE and part.size:
                access = 4 | bool(part.flags & _EXECUTABLE) | 2 * bool(part.flags & _WRITABLE)
                yield _PROGRAM.pack(
                    1, access, part.offset, part.address, part.address, part.stored, part.size, 1
                )

    def _symbols(self) -> tuple[bytes, bytes]:
        """The symbol table and its strings: what is defined in a section, functions with sizes."""
        found = [
            (symbol.section_idx, part.address + symbol.value, symbol)
            for symbol in self._program.symbols
            if 0 < symbol.section_idx <= len(self._parts) and symbol.name
            for part in [self._parts[symbol.section_idx - 1]]
            if symbol.value < part.size and symbol.name != part.name
        ]
        starts: dict[int, list[int]] = {}
        for section, address, symbol in found:
            if symbol.is_function:
                starts.setdefault(section, []).append(address)
        ends = {
            (section, start): end
            for section, addresses in starts.items()
            for ordered in [sorted(set(addresses))]
            for start, end in zip(ordered, [*ordered[1:], self._end(section)], strict=True)
        }
        rows, strings = [bytes(_SYMBOL.size)], bytearray(b"\0")
        for section, address, symbol in found:
            size = ends[section, address] - address if symbol.is_function else 0
            info = (1 if symbol.is_external else 0) << 4 | (2 if symbol.is_function else 0)
            rows.append(_SYMBOL.pack(len(strings), info, 0, section, address, size))
            strings += _text(symbol.name).encode() + b"\0"
        return b"".join(rows), bytes(strings)

    def _end(self, section: int) -> int:
        part = self._parts[section - 1]
        return part.address + part.size


def _text(name: str | bytes) -> str:
    """A name, which LIEF gives as bytes where it is no UTF-8."""
    return name if isinstance(name, str) else name.decode("utf-8", "replace")


def _row(name: int, part: _Part) -> bytes:
    """The ELF header of a section."""
    kind = _PROGBITS if part.stored else _NOBITS
    is_code = bool(part.flags & _EXECUTABLE)
    flags = 0 if part.flags & _DISCARDABLE else _ALLOC | is_code * _EXEC
    size = part.stored if part.is_debug else part.size
    return _SECTION.pack(
        name, kind, flags, part.address if flags else 0, part.offset, size, 0, 0, 1, 0
    )
