from typing import NamedTuple

from lbr2pgo.support.arrays import I32, I64, U8, U32, U64, Records

class ScopeColumns(NamedTuple):
    """A forest of functions and of those inlined into them, parents before children; (s,) each."""

    parent: I64
    """-1 for a function that stands alone."""
    function: I32
    """Number of its name."""
    line: U32
    discriminator: U32
    """Location of the call in the parent."""

class PlaceColumns(NamedTuple):
    """Places in the source; (p,) each."""

    scope: I32
    """Row of the innermost function around each, -1 for none."""
    line: U32
    discriminator: U32
    """Location in that function."""
    factor: U64
    """What counts there are multiplied by."""
    code: I64
    """(p + 1,): where the instructions of each begin."""
    calls: I64
    """(p + 1,): where the calls made there begin."""

class CodeColumns(NamedTuple):
    """Instructions (n,), those of a place together."""

    counts: U64
    size: U8
    """Bytes."""
    is_body: U8
    """Not 0 for those that give their location a count."""

class CallColumns(NamedTuple):
    """Calls (k,), those made at a place together."""

    callee: I64
    counts: U64

class FunctionRows:
    """Makes the rows of a sample profile, one function after the other, in any thread.

    Functions of one name are one, and so are those inlined at one location of one context.
    """

    def __init__(
        self, scopes: ScopeColumns, places: PlaceColumns, code: CodeColumns, calls: CallColumns,
        functions: int,
    ) -> None:  # fmt: skip
        """Take what is known of all; `functions` is how many names there are."""

    def pieces(self, places: int) -> list[tuple[int, int]]:
        """The functions in ranges, whose functions have so many places, about."""

    def of(self, functions: tuple[int, int]) -> tuple[Records, Records, Records]:
        """What a range of functions makes: contexts, rows of the body, and calls.

        In the columns of `Contexts` but `head`, `Body` and `CallTargets`; the first row is 0.
        Contexts stand as their functions do, parents before children; rows by their context, line
        and discriminator; calls by their row and callee. A location that only calls has a zero.
        """
