"""Function names in LLVM sample profiles: their hashes, their order, their canonical form.

A name is a string, or, in profiles that store hashes only, the 64-bit number that
LLVM calls GUID. Bytes that are no UTF-8 stand in strings as surrogates (`os.fsdecode`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from lbr2pgo.program import pseudo_probes

Name = str | int
Location = tuple[int, int]
"""Line less the function's first line, and discriminator; or probe number and 0."""

UNIQUE_SUFFIX = ".__uniq."
"""What -funique-internal-linkage-names appends, before a number."""
_SELECTED_SUFFIXES = (".llvm.", ".part.")
"""The last appended comes first."""
CLONE_SUFFIXES = (
    ".cleanup", ".destroy", ".resume", ".cold", ".warm", ".llvm.", ".part.", ".isra.",
    ".constprop.", ".lto_priv.",
)  # fmt: skip
"""What compilers and BOLT append to the name of a function that they copied or took apart."""


class Frame(NamedTuple):
    """A frame of a calling context: a function, and where in it the next frame was called."""

    function: Name
    location: Location = (0, 0)


Context = tuple[Frame, ...]
"""Calling context, outermost caller first; the last frame is the function itself, at (0, 0)."""
Key = Name | Context
"""What tells the functions of a profile apart: a name, or a whole context."""


def guid(name: Name) -> int:
    """LLVM's 64-bit hash of a name."""
    return name if isinstance(name, int) else pseudo_probes.guid(os.fsencode(name))


def order_key(name: Name) -> tuple[int, bytes]:
    """Sorts names as LLVM does: numbers first, strings by their bytes (LLVM: FunctionId.h)."""
    if isinstance(name, int):
        return 0, name.to_bytes(8, "big")
    return 1, os.fsencode(name)


def context_order_key(context: Context) -> list[tuple[tuple[int, bytes], Location]]:
    """Sorts calling contexts as LLVM does: frame by frame, then shorter ones first."""
    return [(order_key(frame.function), frame.location) for frame in context]


def canonical_name(name: str) -> str:
    """The name under which clang looks a function up: less what passes append for their own use.

    LLVM: FunctionSamples::getCanonicalFnName, of the policy "selected".

    >>> canonical_name("f.__uniq.123.llvm.456")
    'f.__uniq.123'
    >>> canonical_name("f.part.0"), canonical_name("f.cold")
    ('f', 'f.cold')
    """
    return without_suffixes(name, _SELECTED_SUFFIXES) if "." in name else name


def original_name(symbol: str) -> str:
    """The function that a symbol's code was copied from or taken out of.

    >>> original_name("f.part.0.cold"), original_name("f.__uniq.123")
    ('f', 'f.__uniq.123')
    """
    return without_suffixes(symbol, CLONE_SUFFIXES) if "." in symbol else symbol


def without_suffixes(name: str, suffixes: Sequence[str]) -> str:
    """A name less these suffixes, with a number behind those that end in a dot.

    >>> without_suffixes("f.cold.1.llvm.7", (".cold", ".llvm."))
    'f.cold.1'
    """
    for suffix in suffixes:
        start = name.rfind(suffix)
        if start >= 0 and name.rfind(".") in (start, start + len(suffix) - 1):
            name = name[:start]
    return name
