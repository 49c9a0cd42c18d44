from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.support.arrays import I64, U8, U64

WAS_INLINED: int
SHOULD_BE_INLINED: int
"""Attributes (bits), as LLVM numbers them."""
LOST: int
"""Stands for what samples were merged into that are lost."""

class FunctionSizes:
    """Bytes of functions in the contexts in which the binary has them.

    A trie from callees to callers: rows (node, location of the call in the caller, function),
    where the innermost function has location 0, and row 0 is the root's.
    """

    def __init__(self, nodes: RowIds, size: I64, first_child: I64) -> None:
        """Of each node (n,) its bytes, -1 where nothing is known, and a child, -1 for none."""

class ContextTrie:
    """Contexts, while it is decided which of them are inlined.

    Nodes are numbered from 1 on, 0 is the root, and a location is one number (`keys.location_of`).
    Samples have the number of the node that had them first.
    """

    def __init__(
        self,
        parent: I64,
        location: U64,
        function: U64,
        has_samples: U8,
        head: U64,
        total: U64,
        first_line: U64,
        first_count: U64,
        attributes: U8,
    ) -> None:
        """Columns (n,) of nodes, callers before those whom they called; row 0 is the root.

        The first line of a function is its smallest location.
        """

    def add_calls(self, samples: I64, location: U64, callee: U64, count: U64) -> None:
        """Add calls (k,) that were seen in the samples of callers."""

    def call_weights(self) -> U64:
        """(n,): how often each function was called in its context; 0 where nobody knows."""

    def inline(
        self,
        order: I64,
        offsets: I64,
        contexts: I64,
        sizes: FunctionSizes,
        guids: U64,
        cold: int,
        hot: int,
        as_llvm: bool,
    ) -> None:
        """Decide for one function after the other, callers first.

        All contexts of a function that are not inlined into its callers become one. Then the
        contexts of what it calls are looked at, the most called ones first; small ones that
        are called often are inlined, and those below them looked at, until the function has grown
        to its limit. The first half is done for all functions of `order` (k,).

        contexts: samples of function `f` are `contexts[offsets[f]:offsets[f + 1]]`. Counts up to
        `cold` are never inlined; those from `hot` on are so if the function has less than 150,001
        bytes; and a hundred times that if the binary had it inlined.

        Where a context of a function that calls itself becomes part of another one, what is called
        from there is looked for after it has been taken away; `as_llvm` before, which loses
        samples.
        """

    def result(self) -> tuple[I64, I64, I64, I64]:
        """What is left.

        Nodes (m,), parents first and the root before all; the place among them of each one's
        parent; its samples, -1 where it has none or they were merged; and, of all samples (n,),
        those into which they were merged, -1 for none, LOST for those that are lost.
        """

    @property
    def locations(self) -> U64: ...
    @property
    def totals(self) -> U64:
        """(n,): of samples, with those that were merged into them."""
    @property
    def heads(self) -> U64: ...
    @property
    def attribute_bits(self) -> U8: ...
