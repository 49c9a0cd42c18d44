"""jitdump files, and a recording of a program that makes code as it runs.

Written after tools/perf/Documentation/jitdump-specification.txt; nothing here comes from the
package.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from builders import perf_data as build
from builders.perf_data import Event, Sample
from builders.processes import PROGRAM_AT
from builders.recordings import PIE

X86_64, AARCH64 = 62, 183
LOOP = bytes.fromhex("ffcf75fcc3")
"""dec edi; jnz -4; ret: a branch at 2 to 0, and a return at 4."""
OTHER = bytes.fromhex("90907501c3c3")
"""nop; nop; jnz +1; ret; ret: a branch at 2 to 5."""
MEMORY = 0x7E00_0000_0000
PID = 10
FIRST, LAST = 100, 1000
"""Times of samples."""


def header(machine: int = X86_64, flags: int = 0, magic: int = 0x4A695444) -> bytes:
    return struct.pack("<IIIIIIQQ", magic, 1, 40, machine, 0, PID, 1, flags)


def record(kind: int, time: int, body: bytes) -> bytes:
    return struct.pack("<IIQ", kind, 16 + len(body), time) + body


def load(address: int, name: str, code: bytes, time: int = 1, number: int = 0) -> bytes:
    fixed = struct.pack("<IIQQQQ", PID, PID, address, address, len(code), number)
    return record(0, time, fixed + name.encode() + b"\0" + code)


def move(old: int, new: int, size: int, time: int, number: int = 0) -> bytes:
    return record(1, time, struct.pack("<IIQQQQQ", PID, PID, new, old, new, size, number))


def lines(address: int, rows: Iterable[tuple[int, int, bytes]]) -> bytes:
    body = [struct.pack("<Qii", at, line, 0) + file + b"\0" for at, line, file in rows]
    return record(2, 1, struct.pack("<QQ", address, len(body)) + b"".join(body))


def recording(
    target: Path,
    dump: Path | None,
    stacks: Sequence[tuple[int, Sequence[tuple[int, int]]]],
    memory: str = "//anon",
    event: Event | None = None,
    features: Mapping[int, bytes] | None = None,
) -> Path:
    """Of a program with memory that it may run; stacks with their times, newest branch first.

    The program maps its jitdump, if there is one.
    """
    event = event or Event()

    def mapped(start: int, path: str, length: int = 0x3000) -> bytes:
        trailer = event.trailer(PID, PID, 10, 1)
        return build.mmap2(PID, start, length, path, trailer, offset=0)

    space = mapped(PROGRAM_AT, str(PIE)) + mapped(MEMORY, memory, 0x10000)
    if dump is not None:
        space += mapped(MEMORY + 0x10_0000, str(dump), 0x1000)
    samples = b"".join(
        Sample(
            tuple((*pair, 2) for pair in stack), ip=stack[0][0], pid=PID, tid=PID, time=time
        ).encode(event)
        for time, stack in stacks
    )
    target.write_bytes(build.file_form([event], space + samples, features))
    return target
