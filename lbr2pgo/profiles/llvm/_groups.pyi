from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.texts import Texts

def grouped(group: I64, groups: int) -> tuple[I64, I64]:
    """Rows of (n,) by their groups, those of one as they stood, and where each group begins.

    The latter are (groups + 1,). Rows of group -1 are in none.
    """

def order_groups(
    rows: I64, bounds: I64, first: U64, second: U64, name: I64, names: Texts
) -> None:  # fmt: skip
    """Order the rows of each group, in place: by two numbers, then by the bytes of their names."""

def depth_first(rows: I64, bounds: I64) -> tuple[I64, I64]:
    """The rows of a forest, each before what is below it, and how deep each of these is.

    Those below row i are group i + 1, those below none are group 0, as `grouped` has them.
    """
