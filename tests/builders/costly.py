"""Small files that cost much where they are read without limits.

Each function writes one at a path and gives the words of a command that reads it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from builders import jit
from builders import perf_data as build
from builders.perf_data import Event, Sample
from builders.recordings import PIE

EVENT = Event()
ENTRY = (0x5555_0000_13C3, 0x5555_0000_1370, 2)  # the end of a loop
LIBRARY, NUMBER = 0x7000_0000_0000, b"012345678901"
TRAILER = EVENT.trailer(10, 10, 2)
PID, PARENT, TID, START = 8, 12, 16, 16
"""Where records of forks and mappings have them."""


def repeated(record: bytes, count: int, **columns: tuple[int, np.ndarray]) -> bytes:
    """A record many times; columns are numbers or texts (count,) with their place in it."""
    rows = np.tile(np.frombuffer(record, np.uint8), (count, 1))
    for place, values in columns.values():
        size = values.dtype.itemsize
        rows[:, place : place + size] = values.view(np.uint8).reshape(count, size)
    return rows.tobytes()


def mappings(
    count: int, name: bytes = b"%s.so", *, files: bool = False, pids: bool = False
) -> bytes:
    """One after the other in memory, of one file or each of its own, in one process or many."""
    path = f"/lib/{(name % NUMBER).decode()}"
    record = build.mmap2(10, LIBRARY, 0x1000, path, TRAILER, offset=0)
    number = np.arange(count, dtype=np.uint64)
    columns = {"start": (START, np.uint64(LIBRARY) + number * np.uint64(0x1000))}
    if files:
        texts = np.array([b"%012d" % i for i in range(count)])
        columns["path"] = (record.index(NUMBER), texts)
    if pids:
        columns["pid"] = (PID, (number + np.uint64(100)).astype(np.uint32))
    return repeated(record, count, **columns)


def forks(count: int) -> bytes:
    """Each of the one before."""
    number = np.arange(count, dtype=np.uint32) + np.uint32(10)
    child = number + np.uint32(1)
    record = build.fork(0, 0, 0, 5, TRAILER)
    return repeated(record, count, pid=(PID, child), parent=(PARENT, number), tid=(TID, child))


def recording(path: Path, records: bytes, program: str = str(PIE)) -> list[str]:
    own = build.mmap2(10, 0x5555_0000_0000, 0x5000, program, TRAILER, offset=0)
    samples = Sample((ENTRY,), pid=10, tid=10, time=1 << 40).encode(EVENT) * 9
    path.write_bytes(build.file_form([EVENT], own + records + samples))
    return ["report", str(path), "--binary", str(PIE), "--html", f"{path}.html"]


def files_of_another_program(path: Path) -> list[str]:
    return recording(path, mappings(40_000, files=True), "/elsewhere/program")


def files_of_one_name(path: Path) -> list[str]:
    name = b"%s/" + PIE.name.encode()
    return recording(path, mappings(40_000, name, files=True), "/elsewhere/program")


def many_mappings(path: Path) -> list[str]:
    return recording(path, mappings(200_000))


def mappings_of_many_processes(path: Path) -> list[str]:
    return recording(path, mappings(200_000, pids=True))


def many_forks(path: Path) -> list[str]:
    return recording(path, forks(200_000))


def children_of_many_mappings(path: Path) -> list[str]:
    """Each maps one file beside those of its parent."""
    number = np.arange(20_000, dtype=np.uint32) + np.uint32(100)
    record = build.fork(0, 10, 0, 5, TRAILER)
    children = repeated(record, len(number), pid=(PID, number), tid=(TID, number))
    return recording(path, mappings(5_000) + children + mappings(len(number), pids=True))


def sampled_children_of_many_mappings(path: Path) -> list[str]:
    """Each is sampled where it mapped a file of its own."""
    number = np.arange(10_000, dtype=np.uint32) + np.uint32(100)
    record = build.fork(0, 10, 0, 5, TRAILER)
    children = repeated(record, len(number), pid=(PID, number), tid=(TID, number))
    entry = (LIBRARY + 8, LIBRARY + 16, 2)
    samples = b"".join(
        Sample((ENTRY, entry), pid=pid, tid=pid, time=1 << 40).encode(EVENT)
        for pid in number.tolist()
    )
    own = mappings(len(number), pids=True)
    return recording(path, mappings(5_000) + children + own + samples)


def packed_mappings(path: Path) -> list[str]:
    record = build.mmap2(10, LIBRARY, 0x1000, "/lib/libc.so", TRAILER, offset=0)
    return recording(path, build.Packer().pack(record * 2_000_000))


def packed_forks(path: Path) -> list[str]:
    return recording(path, build.Packer().pack(forks(1_000_000)))


def _made(path: Path, name: str, content: bytes) -> list[str]:
    told = path.with_name(name)
    told.write_bytes(content)
    jit.recording(path, told, [(100, [(jit.MEMORY + 2, jit.MEMORY)] * 2)])
    return ["report", str(path), "--binary", str(PIE), "--jit", str(told), "--source"]


def _moves(count: int, size: int) -> bytes:
    at = jit.MEMORY
    return b"".join(jit.move(at, at + size * i, size, 200 + i) for i in range(1, count))


def moved_lines(path: Path) -> list[str]:
    rows = [(jit.MEMORY + i % 5, i + 1, b"\xff" if i else b"a.js") for i in range(20_000)]
    told = jit.lines(jit.MEMORY, rows) + jit.load(jit.MEMORY, "loop", jit.LOOP)
    return _made(path, "jit-10.dump", jit.header() + told + _moves(500, 64))


def moved_code(path: Path) -> list[str]:
    code = jit.LOOP + bytes(100_000)
    told = jit.load(jit.MEMORY, "loop", code)
    return _made(path, "jit-10.dump", jit.header() + told + _moves(20_000, len(code)))


def code_far_apart(path: Path) -> list[str]:
    far = (jit.load(jit.MEMORY + 60_000 * i, "f", jit.LOOP) for i in range(40_000))
    return _made(path, "jit-10.dump", jit.header() + b"".join(far))


def a_long_name(path: Path) -> list[str]:
    told = jit.lines(jit.MEMORY, [(jit.MEMORY, 1, b"\xfe")])
    return _made(
        path, "jit-10.dump", jit.header() + told + jit.load(jit.MEMORY, " f:1" * 10**6, jit.LOOP)
    )


def many_names(path: Path) -> list[str]:
    lines = (b"%x 8 f\n" % (jit.MEMORY + 16 * i) for i in range(200_000))
    return _made(path, "perf-10.map", b"".join(lines))


def saved_counts(path: Path) -> list[str]:
    rows, noise = 10_000_000, np.random.default_rng(1).bytes(4_800_000)
    columns = {name: np.zeros(rows, "<u8") for name in
               ("from_", "to", "end", "count", "mispredicted", "prediction_unknown")}  # fmt: skip
    columns["from_"].view(np.uint8)[: len(noise)] = np.frombuffer(noise, np.uint8)
    header = json.dumps({"version": 2, "build_id": None, "tallies": {}}).encode()
    path = path.with_suffix(".npz")
    np.savez_compressed(path, lbr2pgo_counts=np.frombuffer(header, np.uint8),
                        known=np.full(rows, 3, np.uint8), **columns)  # fmt: skip
    return ["convert", str(path), "--binary", str(PIE), "--fdata", f"{path}.fdata"]


COSTLY: tuple[Callable[[Path], list[str]], ...] = (
    files_of_another_program, files_of_one_name, many_mappings, mappings_of_many_processes,
    many_forks, children_of_many_mappings, sampled_children_of_many_mappings, packed_mappings,
    packed_forks, moved_lines, moved_code,
    code_far_apart, a_long_name, many_names, saved_counts,
)  # fmt: skip
