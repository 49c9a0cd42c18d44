from lbr2pgo.support.arrays import I64, U8, U64, Bytes

NUMBER_BYTES: int
"""What a number takes at most."""

def put_lines(form: bytes, rows: U64, text: Bytes, start: I64, room: U8) -> int:
    """Write rows (n, k) into bytes as `form` says; how many bytes that took.

    In `form` `%x` stands for a column in hexadecimal, `%d` for one in decimal, `%s` for names:
    name i lies in text[start[i] : start[i + 1]]. Raises IndexError if there is too little room.
    """
