"""The lines of a sample profile in text, from columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lbr2pgo.native.jit import compiled_leaf

NEWLINE, BLANK, ZERO = ord("\n"), ord(" "), ord("0")
_COLON, _DOT = ord(":"), ord(".")
_TEN = np.uint64(10)

HEADER_BYTES = 66
"""What a context's line holds at most besides indent and name: three numbers, a location, signs."""
BODY_BYTES = 64
"""What a body line holds at most besides its indent and its calls."""
CALL_BYTES = 22
"""What a call holds at most besides the callee's name."""


class ContextLines(NamedTuple):
    """Contexts in the order of the file, i64[n] each; `body` is i64[n + 1], rows of each."""

    depth: Any
    line: Any
    discriminator: Any
    name: Any
    total: Any
    head: Any
    body: Any


class BodyLines(NamedTuple):
    """Locations in the order of the file, i64[m] each; `calls` is i64[m + 1], rows of each."""

    line: Any
    discriminator: Any
    count: Any
    calls: Any


class CallParts(NamedTuple):
    """Calls in the order of the file, i64[k] each."""

    callee: Any
    count: Any


class NameBytes(NamedTuple):
    """All names, end to end: u8[…], and where each begins, i64[names + 1]."""

    text: Any
    start: Any


@compiled_leaf
def _put_number(out: Any, at: int, number: Any) -> int:
    """Write a number in decimal."""
    value = np.uint64(number)
    end = at + 1
    rest = value // _TEN
    while rest > 0:
        end += 1
        rest //= _TEN
    for place in range(end - 1, at - 1, -1):
        out[place] = ZERO + np.int64(value % _TEN)
        value //= _TEN
    return end


@compiled_leaf
def _put_name(out: Any, at: int, names: NameBytes, name: int) -> int:
    for i in range(names.start[name], names.start[name + 1]):
        out[at] = names.text[i]
        at += 1
    return at


@compiled_leaf
def _put_place(out: Any, at: int, indent: int, line: int, discriminator: int) -> int:
    """Write a location as `  12.3: `."""
    for _ in range(indent):
        out[at] = BLANK
        at += 1
    at = _put_number(out, at, line)
    if discriminator:
        out[at] = _DOT
        at = _put_number(out, at + 1, discriminator)
    out[at], out[at + 1] = _COLON, BLANK
    return at + 2


@compiled_leaf
def _put_header(out: Any, at: int, contexts: ContextLines, i: int, names: NameBytes) -> int:
    """Write a context's first line, without its end."""
    if contexts.depth[i]:
        at = _put_place(
            out, at, contexts.depth[i], contexts.line[i], contexts.discriminator[i]
        )  # fmt: skip
    at = _put_name(out, at, names, contexts.name[i])
    out[at] = _COLON
    at = _put_number(out, at + 1, contexts.total[i])
    if contexts.depth[i] == 0:
        out[at] = _COLON
        at = _put_number(out, at + 1, contexts.head[i])
    return at


@compiled_leaf
def _put_calls(out: Any, at: int, calls: CallParts, first: int, end: int, names: NameBytes) -> int:
    for row in range(first, end):
        out[at] = BLANK
        at = _put_name(out, at + 1, names, calls.callee[row])
        out[at] = _COLON
        at = _put_number(out, at + 1, calls.count[row])
    return at


@compiled_leaf
def put_lines(
    out: Any, first: int, end: int, contexts: ContextLines, body: BodyLines, calls: CallParts,
    names: NameBytes,
) -> int:  # fmt: skip
    """Write contexts `first` to `end` into u8 `out`; returns how many bytes that took.

    `out` must be large enough: see HEADER_BYTES, BODY_BYTES and CALL_BYTES.
    """
    at = 0
    for i in range(first, end):
        at = _put_header(out, at, contexts, i, names)
        out[at] = NEWLINE
        at += 1
        for row in range(contexts.body[i], contexts.body[i + 1]):
            at = _put_place(
                out, at, contexts.depth[i] + 1, body.line[row], body.discriminator[row]
            )  # fmt: skip
            at = _put_number(out, at, body.count[row])
            at = _put_calls(out, at, calls, body.calls[row], body.calls[row + 1], names)
            out[at] = NEWLINE
            at += 1
    return at
