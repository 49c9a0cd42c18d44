from lbr2pgo.support.arrays import I64, Bytes

class Texts:
    """Strings that end with a NUL, by their places.

    A place is one number for a section and an offset there; other loops give it, -1 where there
    is no string. Sections as (n,) u8 are not copied, and live as long as this does.
    """

    def __init__(
        self, str_: Bytes, line_str: Bytes, info: Bytes, line: Bytes, supplement: Bytes, /
    ) -> None:
        """`supplement` is the .debug_str of the supplementary file (dwz)."""
    def decode(self, places: I64) -> list[str | None]:
        """The strings at (n,) places; None where there is none, or where it has no end.

        What is decoded in all is bounded, because hostile places may share one endless string.
        """
