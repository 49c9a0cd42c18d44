"""`profile.proto`, gzipped, as pprof reads it: instructions with lines and inlined functions.

Source: google/pprof: proto/profile.proto; Protocol Buffers: Encoding.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator

from lbr2pgo.analyses.code_profile import MEASURES, CodeProfile
from lbr2pgo.reports.exports.code import code_of
from lbr2pgo.reports.model import Report

_MASK = 2**64 - 1
_VARINT, _BYTES = 0, 2  # wire types


def as_pprof(report: Report) -> bytes:
    """The profile; raises InputError where the report has no code."""
    return gzip.compress(b"".join(_messages(report, code_of(report))), mtime=0)


def _messages(report: Report, code: CodeProfile) -> Iterator[bytes]:
    texts = _Texts()
    for name in MEASURES:
        yield _message(1, _number(1, texts.number(name)), _number(2, texts.number("count")))
    columns = [getattr(code, name).tolist() for name in MEASURES]
    for location, values in enumerate(zip(*columns, strict=True), 1):
        yield _message(2, _packed(1, [location]), _packed(2, values))
    yield _mapping(report, code, texts)
    yield from _locations(code)
    for number, frame in enumerate(code.frames, 1):
        function = texts.number(frame.function)
        yield _message(
            5, _number(1, number), _number(2, function), _number(3, function),
            _number(4, texts.number(frame.file)), _number(5, frame.start_line),
        )  # fmt: skip
    yield _number(14, texts.number("instructions"))
    yield from (_bytes(6, text.encode("utf-8", "replace")) for text in texts.all())


def _mapping(report: Report, code: CodeProfile, texts: _Texts) -> bytes:
    """The program as one mapping, at the addresses that it is linked for."""
    has_lines = any(frame.line for frame in code.frames)
    limit = int(code.address.max(initial=0)) + 1
    return _message(
        3, _number(1, 1), _number(3, limit), _number(5, texts.number(report.binary)),
        _number(6, texts.number(report.build_id or "")),
        *(_number(field, int(known)) for field, known in zip(
            (7, 8, 9, 10), (True, has_lines, has_lines, has_lines), strict=True)),
    )  # fmt: skip


def _locations(code: CodeProfile) -> Iterator[bytes]:
    """One for each instruction, with the leaf's line first."""
    lines = [
        b"".join(
            _message(4, _number(1, frame + 1), _number(2, code.frames[frame].line))
            for frame in reversed(stack)
        )
        for stack in code.stacks
    ]
    pairs = zip(code.address.tolist(), code.stack.tolist(), strict=True)
    for number, (address, stack) in enumerate(pairs, 1):
        yield _message(4, _number(1, number), _number(2, 1), _number(3, address), lines[stack])


class _Texts:
    """The string table, which begins with an empty one."""

    def __init__(self) -> None:
        self._numbers = {"": 0}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> list[str]:
        return [*self._numbers]


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first.

    >>> _varint(300).hex()
    'ac02'
    """
    value &= _MASK
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _number(field: int, value: int) -> bytes:
    """A field of a number; 0 is what stands for none."""
    return _varint(field << 3 | _VARINT) + _varint(value) if value else b""


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(content)) + content


def _message(field: int, *parts: bytes) -> bytes:
    return _bytes(field, b"".join(parts))


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _bytes(field, b"".join(map(_varint, values)))
