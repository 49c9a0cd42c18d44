from lbr2pgo.support.arrays import I64, U64

class FileSpans:
    """Views of which files are mapped where, and how much was seen in each file."""

    def __init__(self, views: I64, offsets: I64, spans: U64, files: I64, counts: U64) -> None:
        """Take the view of each sample (n,), and where the spans of each view begin (v + 1,).

        spans (s, 2) are half-open run-time addresses, ordered and disjoint in each view; files (s,)
        are rows of counts (f,), to which loops add. View 0 is the kernel's, the upper half of all
        addresses; file 0 stands for none that is known, file 1 for the kernel itself. What points
        outside of these raises IndexError in the loops.
        """
