from typing import Any

from lbr2pgo.support.arrays import I32, I64, U8, U64, Bytes

# Why `whole_records` stopped.
PARTIAL: int
"""The next record is not all there."""
SPECIAL: int
"""The next record is a compressed one, or has data behind it."""
BAD: int
"""The size of the next record is less than that of its header."""

# Why a sample can't be read.
UNKNOWN_EVENT: int
TOO_SHORT: int
BAD_CHAIN: int
BAD_STACK: int
BAD_ACCESS: int
DEFERRED_CHAIN: int
"""Not that, but a call chain of which a later record has the user's frames; they are lost."""
TALLIES: int
"""How many such reasons there are."""

TYPE_COUNTS: int
"""Types of records that are told apart; those from the last one on are counted together."""
SIMPLEPERF_TYPES: int
"""As which those that only simpleperf writes are counted."""

def whole_records(data: Bytes, start: int) -> tuple[int, int]:
    """Where the run of whole plain records from `start` on ends, and why."""

def next_plausible(data: Bytes, start: int) -> int:
    """First position from `start` on where records seem to begin again; -1 if there is none."""

def find_records(data: Bytes, start: int, wanted: U8, counts: I64, found: I64) -> tuple[int, int]:
    """Positions of the records of `wanted` types among whole records, from `start` on.

    wanted (TYPE_COUNTS,) is 0 or 1; every record passed is added to counts (TYPE_COUNTS,). Returns
    where it stopped (before the end only if `found` is full) and how many it found. Raises
    IndexError where the data are no whole records.
    """

class Layouts:
    """How the samples of each event are laid out."""

    def __init__(self, fields: I64, id_at: int, ids: U64, id_events: I32) -> None:
        """Take what the attrs say.

        fields (events, 12): positions of ip, pid and tid, time, cpu, address of data, and the first
        field that is not fixed, as words from the record's start, -1 where there is none;
        `sample_type`; `read_format`; whether stacks have a hardware index, and counters; whether
        call chains are kept; how many of the user's registers a sample holds. id_at is the word
        that holds a sample's id, 0 where all samples are the first event's; ids (k,) ascend, and
        id_events (k,) are the event of each.
        """

class Room:
    """Room for one batch of samples, in the columns of `BranchStacks`."""

    def __init__(
        self,
        samples: int,
        entries: int,
        frames: int = 0,
        *,
        has_counters: bool = False,
        has_cpus: bool = False,
        has_accesses: bool = False,
    ) -> None:
        """For so many of each; without frames no layout may keep call chains."""
    def __len__(self) -> int: ...
    def columns(self) -> dict[str, Any]:
        """What is in it, by the names of `BranchStacks`; without weights and call chains."""
    def call_chains(self) -> tuple[U64, I64] | None:
        """Frames (c,) and offsets (n + 1,), as `CallChains` has them; None without room for any.

        PERF_CONTEXT_* words are left out; frames of the kernel come before the user's.
        """

def read_samples(
    data: Bytes, start: int, position: int, layouts: Layouts, room: Room, tallies: I64
) -> int:
    """Append the samples among whole records, from `start` on; where it stopped.

    It stops before the end only if the room is full. `position` is the place of `data[0]` in the
    stream of records: the time of samples that have none. Samples that can't be read are counted
    in tallies (TALLIES,) by reason. Raises IndexError where the data are no whole records.
    """
