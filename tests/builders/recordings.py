"""Recordings of the committed test programs, whole, and made to order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from builders import perf_data as build
from builders.perf_data import Entry, Event, Sample

TESTBINS = Path(__file__).parents[2] / "testbins"
STATIC = TESTBINS / "x86-64" / "interp.static"
PIE = TESTBINS / "x86-64" / "interp.pie"
RECORDING = TESTBINS / "recordings" / "x86-64-interp.pie.perf.data"
STATIC_RECORDING = TESTBINS / "recordings" / "x86-64-interp.static.perf.data"

FEATURE_ARCH = 6


def recorded(
    stacks: Sequence[Sequence[Entry]],
    *,
    event: Event | None = None,
    path: str = "/elsewhere/interp.static",
    pid: int = 10,
    extra: bytes = b"",
    features: Mapping[int, bytes] | None = None,
) -> bytes:
    """A perf.data of the static program, with these stacks; `extra` records stand in between."""
    event = event or Event()
    # Where its code lies if the file's page at 0x1000 is the first one that is mapped.
    space = build.mmap2(pid, 0x202000, 0xA0000, path, event.trailer(pid, pid, 1))
    samples = b"".join(
        Sample(tuple(stack), pid=pid, tid=pid, time=100 + i).encode(event)
        for i, stack in enumerate(stacks)
    )
    return build.file_form([event], space + extra + samples, features)
