from lbr2pgo.support.arrays import I64, Bytes

TEXT_SECTIONS: int
"""Sections that hold strings: .debug_str, .debug_line_str, .debug_info, .debug_line, and the
supplementary file's .debug_str."""

def decode_texts(part: Bytes, starts: I64, most: int) -> list[str]:
    """The strings that start at (n,) positions of a part of a section, up to the first without end.

    No more than about `most` bytes are decoded. Those that are no UTF-8 are kept as surrogates.
    """
