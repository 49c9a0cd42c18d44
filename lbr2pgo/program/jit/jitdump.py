"""jitdump (`jit-PID.dump`): code that a process made, with its bytes, its time and its lines.

Source: perf: tools/perf/Documentation/jitdump-specification.txt, tools/perf/util/jitdump.h.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from struct import Struct, error

from lbr2pgo.program.jit.made_functions import LONGEST_NAME, JitFunction, read_made
from lbr2pgo.support.errors import InputError

_MAGIC = 0x4A695444  # "JiTD"
_OTHER_ORDER = _MAGIC.to_bytes(4, "big")
_HEADER = Struct("<IIIIIIQQ")
_RECORD = Struct("<IIQ")
_LOAD = Struct("<IIQQQQ")
_MOVE = Struct("<IIQQQQQ")
_LINES = Struct("<QQ")
_LINE = Struct("<Qii")
_CODE_LOAD, _CODE_MOVE, _CODE_LINES, _CODE_CLOSE = 0, 1, 2, 3
_ARCH_TIMESTAMP = 1
_LARGEST = 1 << 30
_SAME_FILE = b"\xff"
"""Stands for the file of the line before."""
_ELF_HEADER = 0x40
"""V8 adds it to the addresses of lines, for the ELF files that perf inject makes
(V8: src/diagnostics/perf-jit.cc, LogWriteDebugInfo)."""


@dataclass(frozen=True, slots=True)
class JitDump:
    """What one process made."""

    machine: int
    """EM_*"""
    has_clock: bool
    """Whether its times are perf's (`perf record -k mono`), and not a processor's own."""
    functions: tuple[JitFunction, ...]
    """By time."""
    damaged: int
    """Bytes at the end that are no whole record: the process may write still."""
    unusable: int
    """Functions at addresses that no process has."""


def read_jitdump(path: Path, *, is_named: bool = True) -> JitDump:
    """Read the file as far as it is whole; raises InputError if it is none, and as `read_made`."""
    data = read_made(path, _LARGEST, is_named=is_named)
    if len(data) < _HEADER.size or int.from_bytes(data[:4], "little") != _MAGIC:
        other = data[:4] == _OTHER_ORDER
        raise InputError(
            "is a jitdump of a big-endian machine" if other else "is no jitdump",
            where=str(path),
            cure="Give the jit-PID.dump that the recorded process wrote.",
        )
    _, _, header, machine, _, _, _, flags = _HEADER.unpack_from(data)
    reading = _Reading(data, max(header, _HEADER.size))
    made = sorted(reading.functions(), key=lambda function: function.time)
    possible = tuple(function for function in made if function.is_possible)
    return JitDump(
        machine,
        not flags & _ARCH_TIMESTAMP,
        _with_lines_inside(possible),
        max(0, len(data) - reading.at),
        len(made) - len(possible),
    )


@dataclass(slots=True)
class _Reading:
    """One pass over the records."""

    data: bytes
    at: int
    _by_number: dict[int, JitFunction] = field(default_factory=dict)
    _lines: dict[int, tuple[tuple[int, int, bytes], ...]] = field(default_factory=dict)
    """Lines that came before their function, by its address, with addresses of their own."""

    def functions(self) -> Iterator[JitFunction]:
        while self.at + _RECORD.size <= len(self.data):
            kind, size, time = _RECORD.unpack_from(self.data, self.at)
            end = self.at + size
            if size < _RECORD.size or end > len(self.data) or kind == _CODE_CLOSE:
                self.at = len(self.data) if kind == _CODE_CLOSE else self.at
                return
            try:
                function = self._function(kind, time, self.at + _RECORD.size, end)
            except (error, ValueError):  # a record that is shorter than what it says to hold
                return
            if function is not None:
                yield function
            self.at = end

    def _function(self, kind: int, time: int, at: int, end: int) -> JitFunction | None:
        content = self.data[at:end]
        if kind == _CODE_LINES:
            address, rows = _LINES.unpack_from(content)
            self._lines[address] = tuple(_lines_of(content, rows))
        elif kind == _CODE_LOAD:
            _, _, _, address, size, number = _LOAD.unpack_from(content)
            past = content.index(b"\0", _LOAD.size)
            code = content[past + 1 : past + 1 + size]
            if len(code) < size:
                raise ValueError("the code is cut")
            told = self._lines.pop(address, ())
            lines = tuple((at - address, line, file) for at, line, file in told)
            name = content[_LOAD.size : past][:LONGEST_NAME]
            self._by_number[number] = JitFunction(address, size, name, time, code, lines)
            return self._by_number[number]
        elif kind == _CODE_MOVE:
            _, _, _, _, address, _, number = _MOVE.unpack_from(content)
            moved = self._by_number.get(number)
            if moved is not None:
                moved = replace(moved, address=address, time=time)
                self._by_number[number] = moved
            return moved
        return None


def _lines_of(content: bytes, rows: int) -> Iterator[tuple[int, int, bytes]]:
    at, file = _LINES.size, b""
    for _ in range(rows):
        address, line, _ = _LINE.unpack_from(content, at)
        past = content.index(b"\0", at + _LINE.size)
        name = content[at + _LINE.size : past]
        file = file if name == _SAME_FILE else name
        yield address, line, file
        at = past + 1


def _with_lines_inside(functions: tuple[JitFunction, ...]) -> tuple[JitFunction, ...]:
    """The functions with the lines inside their code alone, by offset.

    What moved shares its lines with what it was: a function may have many, and move often.
    """
    told = {(id(f.lines), f.size): f for f in functions if f.lines}
    firsts = [min(f.lines)[0] for f in told.values()]
    shift = _ELF_HEADER if firsts and min(firsts) >= _ELF_HEADER else 0
    inside = {
        key: tuple(
            sorted(
                (offset - shift, line, file)
                for offset, line, file in f.lines
                if 0 <= offset - shift < f.size
            )
        )
        for key, f in told.items()
    }
    return tuple(replace(f, lines=inside.get((id(f.lines), f.size), ())) for f in functions)
