from lbr2pgo.support.arrays import I64, Bytes

class TextNumbers:
    """Numbers distinct texts 0, 1, 2 … in the order in which they come; at most 2**30."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def number(self, text: bytes) -> int:
        """The number of a text."""

    def number_all(self, text: Bytes, start: I64, end: I64) -> I64:
        """Numbers of n texts, which stand from `start` to `end` (n,) in `text`.

        Raises IndexError for those that don't.
        """

    def texts(self) -> tuple[Bytes, I64, I64]:
        """All texts by their numbers, as `number_all` takes them."""
