"""A recording of a process of two of the test programs, a file that is nowhere, and the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from builders import perf_data as build
from builders.perf_data import Event, Sample
from builders.recordings import FEATURE_BUILD_ID, PIE, TESTBINS

LIBRARY = TESTBINS / "x86-64" / "shapes.pie"
BUILD_IDS = {
    PIE: "e75cc8c58b5ba6370d0bc41415fe986ec5ab974e",
    LIBRARY: "3314a134f759020a00ca4891dca340b93907bc76",
}
MISSING = "/nowhere/libgone.so.1"
IDLE = "/opt/idle.so"
"""Has no branches."""
PROGRAM_AT, LIBRARY_AT, MISSING_AT = 0x5500_0000_0000, 0x7F00_0000_0000, 0x7F10_0000_0000
KERNEL = 0xFFFF_FFFF_8100_0010
_LENGTH = 0x3000


def in_program(address: int) -> int:
    """Run-time address; both files have their code a page above its place in the file."""
    return PROGRAM_AT + address - 0x1000


def in_library(address: int) -> int:
    return LIBRARY_AT + address - 0x1000


CALL, RETURN, MAIN = 0x1BBF, 0x1C37, 0x2410
"""An indirect jump of the program, an instruction of its, and the library's main."""
BRANCHES = {
    (in_program(CALL), in_library(MAIN)): 5,
    (in_library(0x23F4), in_program(RETURN)): 4,
    (in_program(CALL), KERNEL): 3,
    (KERNEL, in_program(RETURN)): 2,
    (in_program(CALL), MISSING_AT + 0x100): 6,
    (MISSING_AT + 0x110, in_library(MAIN)): 1,
    (MISSING_AT + 0x110, MISSING_AT + 0x200): 7,
}
"""From and to, by run-time address, and how often."""


def process_recording(
    target: Path, places: dict[Path, str], stacks: Sequence[Sequence[tuple[int, int]]] = ()
) -> Path:
    """Of both files, mapped from these paths, and of two that are not there; one never ran.

    Without stacks, each of the `BRANCHES` is alone in one.
    """
    event = Event()
    trailer = event.trailer(10, 10, 1)
    mapped = {
        str(places[PIE]): PROGRAM_AT, str(places[LIBRARY]): LIBRARY_AT, MISSING: MISSING_AT,
        IDLE: MISSING_AT + _LENGTH,
    }  # fmt: skip
    space = b"".join(
        build.mmap2(10, start, _LENGTH, path, trailer, offset=0) for path, start in mapped.items()
    )
    stacks = stacks or [[pair] for pair, times in BRANCHES.items() for _ in range(times)]
    samples = b"".join(
        Sample(tuple((*pair, 2) for pair in stack), pid=10, tid=10, time=100 + i).encode(event)
        for i, stack in enumerate(stacks)
    )
    ids = b"".join(
        build.build_id_record(places[path], bytes.fromhex(identity))
        for path, identity in BUILD_IDS.items()
    )
    target.write_bytes(build.file_form([event], space + samples, {FEATURE_BUILD_ID: ids}))
    return target
