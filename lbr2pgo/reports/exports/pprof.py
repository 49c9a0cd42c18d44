"""`profile.proto`, gzipped, as pprof reads it: instructions with lines and inlined functions.

Where call stacks were recorded, they are samples of their own, with a value that no instruction
has: how often a sample had the stack.

Source: google/pprof: proto/profile.proto; Protocol Buffers: Encoding.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lbr2pgo.analyses.code_profile import MEASURES, CodeProfile
from lbr2pgo.reports.exports.code_frames import CodeSpan, call_stacks, code_of, code_spans, outside
from lbr2pgo.reports.model import Report
from lbr2pgo.support.addresses import slot_of

_MASK = 2**64 - 1
_VARINT, _BYTES = 0, 2  # wire types


def as_pprof(report: Report) -> bytes:
    """The profile; raises InputError where the report has no code."""
    return gzip.compress(b"".join(_messages(report, code_of(report))), mtime=0)


def _messages(report: Report, code: CodeProfile) -> Iterator[bytes]:
    texts = _Texts()
    names = (*MEASURES, "samples") if code.calls else MEASURES
    for name in names:
        yield _message(1, _number(1, texts.number(name)), _number(2, texts.number("count")))
    columns = [getattr(code, name).tolist() for name in MEASURES]
    more = [0] * (len(names) - len(MEASURES))
    for location, values in enumerate(zip(*columns, strict=True), 1):
        if any(values):
            yield _message(2, _packed(1, [location]), _packed(2, [*values, *more]))
    for stack, count in call_stacks(code):
        yield _message(2, _packed(1, stack), _packed(2, [*[0] * len(MEASURES), count]))
    mapped = code_spans(report, code)
    yield from _mappings(mapped, code, texts)
    yield from _locations(code, list(mapped))
    for number, frame in enumerate(code.frames, 1):
        function = texts.number(frame.function)
        yield _message(
            5, _number(1, number), _number(2, function), _number(3, function),
            _number(4, texts.number(frame.file)), _number(5, frame.start_line),
        )  # fmt: skip
    for number, name in enumerate(outside(code), len(code.frames) + 1):
        yield _message(5, _number(1, number), _number(2, texts.number(name)))
    yield _number(14, texts.number("samples" if code.calls else "instructions"))
    yield from (_bytes(6, text.encode("utf-8", "replace")) for text in texts.all())


def _mappings(mapped: Mapping[int, CodeSpan], code: CodeProfile, texts: _Texts) -> Iterator[bytes]:
    known = any(frame.line for frame in code.frames)
    for number, each in enumerate(mapped.values(), 1):
        yield _message(
            3, _number(1, number), _number(2, each.start), _number(3, each.limit),
            _number(5, texts.number(each.file.name)), _number(6, texts.number(each.file.build_id)),
            *(_number(field, int(has)) for field, has in zip(
                (7, 8, 9, 10), (True, known, known, known), strict=True)),
        )  # fmt: skip


def _locations(code: CodeProfile, slots: Sequence[int]) -> Iterator[bytes]:
    """One for each instruction, with the leaf's line first; mappings are by their slots."""
    mapping = {slot: number for number, slot in enumerate(slots, 1)}
    lines = [
        b"".join(
            _message(4, _number(1, frame + 1), _number(2, code.frames[frame].line))
            for frame in reversed(stack)
        )
        for stack in code.stacks
    ]
    pairs = zip(code.address.tolist(), code.stack.tolist(), strict=True)
    for number, (address, stack) in enumerate(pairs, 1):
        file = _number(2, mapping[slot_of(address)])
        yield _message(4, _number(1, number), file, _number(3, address), lines[stack])
    for number in range(len(outside(code))):
        line = _message(4, _number(1, len(code.frames) + 1 + number))
        yield _message(4, _number(1, len(code) + 1 + number), line)


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
