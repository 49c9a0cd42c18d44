"""A plain writer of Protocol Buffers messages, of pprof's profiles and of OpenTelemetry's."""

from __future__ import annotations

import gzip
from collections.abc import Sequence


def number(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    head, rest = value & 0x7F, value >> 7
    return bytes([head]) if not rest else bytes([head | 0x80]) + number(rest)


def field(key: int, value: int | bytes) -> bytes:
    """A field of a number, or of bytes."""
    if isinstance(value, int):
        return number(key << 3) + number(value)
    return number(key << 3 | 2) + number(len(value)) + value


def message(**fields: int | bytes) -> bytes:
    """Fields `_1`, `_2` and so on."""
    return b"".join(field(int(key[1:]), value) for key, value in fields.items())


def pprof(
    samples: Sequence[tuple[int, int]],
    *,
    start: int = 0,
    limit: int = 0,
    offset: int = 0,
    path: str = "/app",
    build_id: str = "",
    measure: tuple[str, str] = ("samples", "count"),
    period: int = 0,
) -> bytes:
    """A profile of addresses and values, each with a caller, in one file."""
    texts = ["", *measure, path, build_id]
    places = sorted({address for address, _ in samples})
    parts = [field(9, 5), field(1, message(_1=1, _2=2))]
    parts += [
        field(2, message(_1=number(places.index(address) + 1) + number(1), _2=number(value)))
        for address, value in samples
    ]
    mapping = message(_1=1, _2=start, _3=limit, _4=offset, _5=3, _6=4)
    parts.append(field(3, mapping))
    parts += [field(4, message(_1=i, _2=1, _3=a)) for i, a in enumerate(places, 1)]
    parts += [field(6, text.encode()) for text in texts]
    return gzip.compress(b"".join([*parts, field(12, period)]), mtime=0)


def otlp(samples: Sequence[tuple[int, int]], *, path: str = "/app") -> bytes:
    """A profile of addresses and values in one file, as this links them."""
    texts = ["", "samples", "count", path]
    tables = [field(1, b""), field(1, message(_4=3)), field(2, b"")]
    tables += [field(2, message(_1=1, _2=address)) for address, _ in samples]
    tables += [field(5, text.encode()) for text in texts] + [field(7, b"")]
    tables += [field(7, message(_1=number(i))) for i in range(1, len(samples) + 1)]
    rows = [field(2, message(_1=i, _4=number(value))) for i, (_, value) in enumerate(samples, 1)]
    profile = field(1, message(_1=1, _2=2)) + b"".join(rows)
    return field(1, field(2, field(2, profile))) + field(2, b"".join(tables))
