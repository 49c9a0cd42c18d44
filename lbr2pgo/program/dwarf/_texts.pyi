from lbr2pgo.native.text_numbers import TextNumbers
from lbr2pgo.support.arrays import I64, Bytes

TEXT_SECTIONS: int
"""Sections that hold strings: .debug_str, .debug_line_str, .debug_info, .debug_line, and the
supplementary file's .debug_str."""

def number_texts(part: Bytes, starts: I64, most: int, known: TextNumbers) -> tuple[I64, int]:
    """Numbers of the strings that start at (n,) positions of a part, up to the first without end.

    Also returns how many bytes these have: no more than about `most`.
    """
