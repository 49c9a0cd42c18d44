from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.support.arrays import I64, U8, U64

NO_LIMIT: int
"""Of the length of repeats, or of the depth of contexts."""

INTO_UNKNOWN: int
"""Stands for what a function was inlined into, if that is not known; nor are its callers then."""

MOST_WORK: int
"""Repeats are looked for that are so short that their length times the frames is at most this."""

def compress(frames: I64, longest: int) -> int:
    """Drop repeats from a sequence (n,), in place; how many frames are left.

    For lengths from 1 to `longest`, but half the sequence at most: of two equal neighbours of
    that length the second one goes, from left to right
    (LLVM: tools/llvm-profgen/ProfileGenerator.h, compressRecursionContext).
    """

class ContextKeys:
    """Numbers calling contexts: of functions, by the call sites on the way to them.

    A frame is a function and a location in it, and a call stack a sequence of frames, which is
    compressed and cut to its innermost `depth` ones.
    """

    contexts: RowIds
    """Rows (context of the caller, location of the call, function); row 0 is no function's."""

    def __init__(
        self,
        callers: I64,
        inlined: I64,
        frames: U64,
        most_frames: int,
        longest: int,
        depth: int,
        is_cut: bool,
    ) -> None:
        """Where frames come from.

        callers (n, 3): of each node of call sites its parent, the inlined function in which the
        call is (-1 where that is not known), and the frame there; node 0 is the root. inlined
        (i, 3): of each inlined function the one that it was inlined into (-1 for functions that
        stand alone), the frame there, and its name. frames (f, 2): function and location.

        Where it is not known in which function a call is, frames outside of it are left out if
        `is_cut`; else there is no context. Frames beyond `most_frames` are left out, too.
        """

    def number(self, node: I64, inline: I64) -> I64:
        """Row in `contexts` of each inlined function (k,), called from a node; -1 for none."""

class CallPaths:
    """Call stacks by address, which are compressed and cut, with calls that they lack.

    A site is the number of an address of a call.
    """

    nodes: RowIds
    """Rows (parent, site, 0); row 0 is the root, which has no site."""

    def __init__(
        self,
        callers: I64,
        function_of: I64,
        gaps: RowIds,
        gap_offsets: I64,
        gap_sites: I64,
        most_frames: int,
        longest: int,
        depth: int,
    ) -> None:
        """Where calls come from.

        callers (n, 2): of each node of call stacks its parent and its site; node 0 is the root.
        function_of (s,): the function in which each site is. gaps: rows (site, function, 0) of
        calls that led to a function by way of the sites
        `gap_sites[gap_offsets[i]:gap_offsets[i + 1]]`. Frames beyond `most_frames` are left out.
        """

    def number(self, node: I64, function: I64) -> I64:
        """Row in `nodes` of each call stack (k,) that led to a function."""

def strong_components(offsets: I64, targets: I64) -> tuple[I64, I64]:
    """Nodes (n,) by components, and the number of each one's component.

    Node `i` has edges to `targets[offsets[i]:offsets[i + 1]]`, each in 0 … n - 1. Components come
    after those that they lead to, and nodes of one in the order in which LLVM gives them
    (LLVM: include/llvm/ADT/SCCIterator.h), if its search begins at node 0.
    """

def infer_calls(
    contexts: RowIds,
    has_samples: U8,
    head: U64,
    total: U64,
    first: U64,
    first_count: U64,
    of_silent_alone: bool,
) -> tuple[I64, U64]:
    """Which contexts (k,) tell their callers of calls that no branch made, and how many each.

    A function without head samples was inlined, and tells its caller how often it was entered: as
    often as its first line ran, and once at least. Innermost functions come first, since this adds
    to their callers' lines (LLVM: tools/llvm-profgen/ProfileGenerator.cpp,
    populateInferredFunctionSamples). `of_silent_alone` leaves callers out that had samples before.

    contexts: rows (context of the caller, location of the call, function), callers before those
    whom they called; row 0 is no context. has_samples, head, total (n,): of each context; what has
    samples, and totals, grow. first, first_count (n,): as `LineColumns.first_lines` has them, which
    become those with the calls.
    """
