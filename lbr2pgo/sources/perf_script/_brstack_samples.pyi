from typing import NamedTuple

from lbr2pgo.support.arrays import U64, Records

Text = bytes | memoryview

class Survey:
    """What no single line of a file tells; made line by line."""

    is_timed: bool
    """Samples have a time, and it orders them among the file's records."""
    @property
    def is_hybrid(self) -> bool:
        """Whether the branch stack stands on a line of its own."""
    @property
    def has_accesses(self) -> bool:
        """Whether samples say which data they are of, and what was done with it."""
    @property
    def has_symbols(self) -> bool:
        """Whether stacks hold symbols and no addresses."""
    @property
    def event_names(self) -> list[str]:
        """The events that samples name, in the order of their numbers."""
    @property
    def records(self) -> list[tuple[bytes, int]]:
        """Lines that perf printed of mappings, tasks and the like, and where they stand."""
    @property
    def has_seen_entries(self) -> bool:
        """Whether it is known what entries look like: the rest of the file need not wait for it."""
    def add(self, text: Text, base: int) -> None:
        """Go over whole lines, which stand at `base` in the file."""
    def part(self) -> Survey:
        """A survey of some later lines, made apart."""
    def merge(self, part: Survey) -> None:
        """Go on with what was made apart of the lines that follow."""

class OpenSample:
    """A sample of which some lines have been read, or none."""

    last_time: int
    """Nanoseconds of the last sample that had a time."""
    def __init__(self, last_time: int = 0) -> None: ...
    @property
    def is_open(self) -> bool:
        """Whether the next line may be part of a sample that has begun."""

class ReadSamples(NamedTuple):
    """The n samples that end in a text, and their m entries."""

    samples: Records
    """(n,): time, ip, weight, event and pid as in `BranchStacks`, address and data_source as its
    accesses are, and where each one's entries (`end`) and its call stack (`frame_end`) end. Without
    times in the file, the place of the sample's last line stands for one."""
    entries: U64
    """(m, 3): from, to, flags; in a file with symbols the hash of a name stands for its address."""
    frames: U64
    """(c,): addresses of call stacks, innermost first, 65,536 of each at most."""
    names: dict[int, bytes]
    """In a file with symbols, their names by the hashes; that of an unknown symbol is empty."""
    offsets: U64
    """(m, 2), in a file with symbols: of the addresses from the symbols."""
    losses: dict[str, int]
    """`lines` that are no sample and no record, `entries` with which a stack was cut short,
    aggregated `counts` without a sample, `zeros` among the counts, and `chains` that were cut."""
    after: OpenSample
    """What the end of the text left open."""

class SampleReader:
    """Reads the lines of a surveyed file.

    Lines are told apart as `native.brstack_lines` says, and only those that perf prints or that
    llvm-profgen takes are read.
    """

    def __init__(self, survey: Survey) -> None: ...
    def read(self, text: Text, base: int, before: OpenSample) -> ReadSamples:
        """Read whole lines that stand at `base` in the file, where `before` was left open."""
