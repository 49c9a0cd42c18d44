from lbr2pgo.counting._file_spans import FileSpans
from lbr2pgo.native.key_table import KeyTable
from lbr2pgo.native.walk import Stacks
from lbr2pgo.support.arrays import I64, U64

def count_traces(
    stacks: Stacks, table: KeyTable, tallies: U64, files: FileSpans | None = None
) -> None:
    """Count traces under keys of from, to and end.

    Sums: occurrences, mispredicted ones, and those of which that is not known.

    tallies (`Reason`s,) counts what became of entries, and which fall-throughs are not known.
    Entries outside the image are counted for the mapped files that they leave, if given, as well.
    """

def touching(stacks: Stacks, spaces: I64) -> None:
    """Fill in the spaces (n,) of samples with an entry that begins or ends in the image, else -1.

    What others count is the same for any image that they do not touch.
    """
