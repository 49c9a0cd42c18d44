"""What small files may cost: all limits on what a few bytes may become.

A file of up to five megabytes, whoever made it, is read in `SECONDS` and `BYTES`, or refused with
the reason (tests/test_costs.py); so are a million mappings, processes or forks, 50 to 120 MB
(tests/test_many_mappings.py). What is read of larger files grows with them, so the limits are
shares of a file's size: no real file comes near one.
"""

from __future__ import annotations

from typing import NamedTuple

SECONDS = 5
"""Of one processor's time."""
BYTES = 300 << 20
"""At the peak (VmHWM)."""


class Limit(NamedTuple):
    """How much a file may hold: so much, and so much more for each of its bytes."""

    always: int
    each: float

    def of(self, stored: int) -> int:
        """For a file, or a part of one, of so many bytes."""
        return self.always + int(self.each * stored)


UNPACKED_RECORDS = Limit(1 << 26, 1 << 10)
"""Bytes of compressed records: zstd packs zeros 30,000 times smaller, but samples differ in their
times at least."""
SPACE_EVENTS = Limit(50_000, 1 / 24)
"""Mappings, forks and their like in a perf.data: the smallest take 24 bytes, most 100."""
COPIED_MAPPINGS = Limit(1 << 20, 4)
"""Mappings of all processes together, for each that is recorded: a child has those of its parent
until it executes another program."""
ARRAY_BYTES = Limit(1 << 23, 12)
"""Bytes of a `.npz`: real arrays shrink to an eighth or so."""
PARQUET_ROWS = Limit(1 << 16, 1 / 4)
"""Rows of counts in Parquet: real ones take ten bytes and more."""
SECTION_BYTES = Limit(1 << 24, 64)
"""Bytes of a packed section: debug information shrinks to a third or so; zeros that are yet to be
relocated, far further."""
MADE_CODE = Limit(1 << 26, 16)
"""Bytes of code that a process made, laid out, for each in its jitdump: it moves, and has gaps."""
