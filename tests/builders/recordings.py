"""Recordings of the committed test programs, whole, and made to order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from builders import perf_data as build
from builders.fixtures import TESTBINS
from builders.perf_data import Entry, Event, Sample

STATIC = TESTBINS / "x86-64" / "interp.static"
PIE = TESTBINS / "x86-64" / "interp.pie"
RECORDED = tuple(
    (machine.name, path.name.removeprefix(f"{machine.name}-").removesuffix(".perf.data"))
    for machine in (TESTBINS / "x86-64", TESTBINS / "aarch64", TESTBINS / "riscv64")
    for path in sorted((TESTBINS / "recordings").glob(f"{machine.name}-*.perf.data"))
)
"""Machine and program of each recording."""
NAMES = ("interp.pie", "interp.static", "shapes.pie", "shapes.static")
"""Of the programs for x86-64."""
RECORDING = TESTBINS / "recordings" / "x86-64-interp.pie.perf.data"
STATIC_RECORDING = TESTBINS / "recordings" / "x86-64-interp.static.perf.data"

STATIC_ENTRY = (0x22A8DA, 0x22A8C0, 2)
"""Once around a loop of the static program."""
STATIC_BUILD_ID = "c9849ae2451093fe91c7caeca200db8813c221e5"

FEATURE_BUILD_ID, FEATURE_ARCH = 2, 6
"""perf: tools/perf/util/header.h."""


def recorded(
    stacks: Sequence[Sequence[Entry]],
    *,
    ips: Sequence[int] | None = None,
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
        Sample(tuple(stack), ip, pid=pid, tid=pid, time=100 + i).encode(event)
        for i, (stack, ip) in enumerate(zip(stacks, ips or [Sample.ip] * len(stacks), strict=True))
    )
    return build.file_form([event], space + extra + samples, features)


def recording_of(program: Path, identity: str | None = STATIC_BUILD_ID, **options: Any) -> Path:
    """A recording beside a copy of the static program, with its build-id in the header."""
    named = bytes.fromhex(identity or "")
    features = {FEATURE_BUILD_ID: build.build_id_record(str(program), named)} if named else {}
    target = program.with_name("perf.data")
    target.write_bytes(recorded([[STATIC_ENTRY]], path=str(program), features=features, **options))
    return target


def binary(name: str) -> Path:
    """One of `NAMES`."""
    return TESTBINS / "x86-64" / name


def recording(name: str) -> Path:
    """Of one of `NAMES`, by the software LBR."""
    return TESTBINS / "recordings" / f"x86-64-{name}.perf.data"
