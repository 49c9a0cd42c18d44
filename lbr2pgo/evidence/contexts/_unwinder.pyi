from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.native.walk import Stacks
from lbr2pgo.support.arrays import I32, I64, U8, U64, Bools

CALL: int
RETURN: int
ENTRY: int
FRAMELESS: int
"""Marks of instructions (bits); functions begin at an ENTRY, and at a FRAMELESS one the frame
pointer does not point to a frame of the function."""
DIRECT: int
NO_BRANCH_THERE: int
"""More marks: what is DIRECT goes to one place alone, and what is no branch nowhere."""

FROM_OUTSIDE: int
"""Stands for all addresses outside the image, as a branch's source."""

TALLIES: int
"""Length of the array of tallies. Samples are in one of the first three places, call stacks of
those that were unwound in one of the next five, what ran between two branches in one of the last
five:"""
UNWOUND: int
NO_BRANCH: int
"""No entry of the branch stack touches the image."""
DROPPED: int
"""There is no call stack, and llvm-profgen needs one."""
WHOLE: int
NO_CHAIN: int
"""There is no call stack."""
NO_CALL: int
"""An address in the call stack does not stand behind a call: what is above is unknown."""
TOO_DEEP: int
"""The call stack has more frames than are kept."""
NO_FRAME: int
"""No frame was made where the sample was taken, so the call stack lacks the innermost caller, and
nothing shows it: none is known."""
MENDED: int
"""Of them, call stacks that lacked callers which the branch stack or the code shows."""
RUNS: int
PAIRED_OUTSIDE: int
"""Between leaving the image and coming back."""
UNSEEN: int
"""An entry between the two did not happen, so the recorder can't tell what did."""
BROKEN: int
"""The code between the two branches can't have run so, or is not known to have."""
BEHIND_BROKEN: int
"""Recorded, but before one that is broken, so without callers."""

def outside_site(sites: RowIds) -> None:
    """Number the site of all addresses outside the image, which comes first."""

def number_sites(
    sites: RowIds, addresses: U64, offsets: I64, spaces: I64, bounds: U64, columns: int
) -> I32:
    """Number the addresses (k, columns or more) of n samples, each in its sample's space.

    Sites are rows (space, run-time address, 0), behind that of `outside_site`. bounds (s, 2) are
    half-open run-time spans that hold the whole image in each space. Gives (k, columns), 0 for
    samples whose space is negative.
    """

class SourceDoubts:
    """What can be told of one source's call stacks only when all of its samples were seen."""

def judge(parts: list[SourceDoubts]) -> None:
    """Let what unwinders know of samples of one source decide what its call stacks lack."""

class Unwinder:
    """Counts straight runs and branches by their calling context; memory grows with contexts.

    Contexts are nodes of a trie of call instructions, where node 0 stands for unknown callers; the
    node of what is counted is that of the callers of the function in which it ran. Branches from
    outside have the source FROM_OUTSIDE and node 0; those that their instructions can't make are
    none.
    """

    def __init__(self, as_llvm: bool, most_frames: int) -> None:
        """With `as_llvm`, samples without a call stack are dropped.

        Of call stacks with more frames than `most_frames` the innermost ones are kept.
        """

    def set_code(self, address: U64, marks: U8, stops: I64, goes_to: U64) -> None:
        """Instructions (m,), in any order.

        `stops` says how many before each one end the straight line, or stand before a gap;
        `goes_to` where those go that are DIRECT.
        """

    def set_sites(self, row: I64, call: I64, function: I64, callee: I64) -> None:
        """Of each site (s,) the instruction there, and the call before it; -1 for none.

        A frame of a call stack with neither is outside. `function` is a number of the function
        there, `callee` of that which the call before it names, -2 for none.
        """

    def missing_pairs(
        self, stacks: Stacks, entries: I32, chains: I32, chain_offsets: I64
    ) -> RowIds:
        """Rows (call, function, 0) of the call stacks that `unwind` takes.

        They hold the address of the second frame's call, where the leaf above it is FRAMELESS and
        the branch stack shows no caller, and the function of that leaf.
        """

    def set_missing(self, pairs: RowIds, calls: U64) -> None:
        """The only call that can stand between the two of each row, 0 for none."""

    def add_source(self) -> SourceDoubts:
        """One more source of samples.

        Where a sample was taken at an instruction that is FRAMELESS, call stacks found by frame
        pointers lack the innermost caller, and those that a recorder kept otherwise do not. Samples
        whose branch stack shows the call, or whose innermost frame stands behind a call of the very
        function, tell which of the two a source has.
        """

    def unwind(
        self,
        stacks: Stacks,
        entries: I32,
        chains: I32,
        chain_offsets: I64,
        source: SourceDoubts,
        first: int,
        past: int,
    ) -> None:
        """Go through samples `first` to `past` of a source, less those whose space is negative.

        entries (m, 2): sites of sources and targets; chains (c,): sites of frames, innermost
        first, of which sample `i` owns `chain_offsets[i]:chain_offsets[i + 1]`.
        """

    def places_in(self, nodes: RowIds) -> I64:
        """Number the nodes as rows (parent, call, 0) without frames from outside: of each, (n,).

        What is called from outside is a context of its own, since a compiler can't see more.
        """

    def counted(self, place: I64) -> tuple[Bools, I64, Bools, I64, U64, U64, U64, U64]:
        """What was counted, in columns (r,), where nodes have these places (n,).

        Whether there is a run, and its node; whether there is a branch, and its node; source and
        target of the branch, where the run begins; its end; and how often. Rows may be alike.
        """

    def tallies(self) -> U64:
        """(TALLIES,): how many samples, call stacks or runs each thing happened to."""
