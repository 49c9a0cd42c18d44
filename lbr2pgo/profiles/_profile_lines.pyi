from typing import NamedTuple

from lbr2pgo.support.arrays import I64, U8, U64
from lbr2pgo.support.texts import Texts

HEADER_BYTES: int
"""What a context's line holds at most besides indent and name: three numbers, a location, signs."""
BODY_BYTES: int
"""What a body line holds at most besides its indent and its calls."""
CALL_BYTES: int
"""What a call holds at most besides the callee's name."""
CHECKSUM_BYTES: int
"""What the line of a checksum holds at most besides its indent."""

ATTRIBUTE_BYTES: int
"""What the line of attributes holds at most besides its indent."""
FRAME_BYTES: int
"""What a caller takes at most besides its name: its location, and signs."""

class ContextLines(NamedTuple):
    """Contexts in the order of the file, (n,) each; `body` is (n + 1,), rows of each."""

    depth: I64
    line: I64
    discriminator: I64
    name: I64
    total: U64
    head: U64
    body: I64
    checksum: U64 | None
    """None in profiles without pseudo probes."""
    attributes: U8 | None
    """None where there are none."""

class CallerStacks(NamedTuple):
    """Calling contexts, which functions are shown in."""

    context: I64
    """(n,): that of each of the contexts of `ContextLines`, all of which have depth 0."""
    parent: I64
    """(c,): the caller's context, -1 for none."""
    line: I64
    """(c,): where in the caller the call is."""
    discriminator: I64
    name: I64
    deepest: int
    """How many callers the innermost one has."""

class BodyLines(NamedTuple):
    """Locations in the order of the file, (m,) each; `calls` is (m + 1,), rows of each."""

    line: I64
    discriminator: I64
    counts: U64
    calls: I64

class CallParts(NamedTuple):
    """Calls in the order of the file, (k,) each."""

    callee: I64
    counts: U64

class ProfileLines:
    """The text of a profile."""

    def __init__(
        self,
        contexts: ContextLines,
        body: BodyLines,
        calls: CallParts,
        names: Texts,
        stacks: CallerStacks | None = None,
    ) -> None: ...
    def put(self, first: int, end: int, room: U8) -> int:
        """Write contexts `first` to `end` into bytes; how many that took.

        HEADER_BYTES and the others tell how many it can be at most. Raises IndexError if they are
        more than there is room for. With checksums or attributes, `first` and `end` stand at
        contexts of depth 0.
        """

NUMBER_BYTES: int
"""What a number takes at most."""

def put_lines(form: bytes, rows: U64, names: Texts, room: U8) -> int:
    """Write rows (n, k) into bytes as `form` says; how many bytes that took.

    In `form` `%x` stands for a column in hexadecimal, `%d` for one in decimal, `%s` for names.
    Raises IndexError if there is too little room.
    """
