"""The names under which GCC looks functions up.

Clones (`.isra.0`, `.part.0`, `.constprop.0`, `.cold`) are one with what they were made of: up to
version 2 of the format a name ends at its first dot, from version 3 on only those suffixes are
taken off, so that the bodies of OpenMP's loops (`._omp_fn.0`) and C's nested functions (`.0`) stand
by themselves; GCC itself sees to what LTO appends to names of statics (`.lto_priv.0`). Constructors
and destructors have the name of their base variant.

GCC: auto-profile.cc, get_original_name and string_table::get_index_by_decl; bug 64346.
"""

from __future__ import annotations

import re

from lbr2pgo.profiles.afdo.afdo import USUAL_VERSION
from lbr2pgo.profiles.llvm.sample_names import Name

_CLONE = re.compile(r"(?:\.(?:isra|constprop|part|cold|localalias)(?:\.[0-9]+)*)+")
_TOKEN = re.compile(
    r"L[a-z]n?[0-9]+E|S[0-9A-Z]*_|[TA][0-9]*_|[CD]4(?=[EI])|U[lt]|D[tT]|[0-9]{1,9}|.", re.DOTALL
)
"""Literals, substitutions, parameters and arrays, unified variants, lambdas, decltypes, lengths."""
_OPENING = frozenset(("N", "I", "J", "X", "F", "Z", "L", "Ul", "Dt", "DT"))
"""What a later `E` ends (Itanium C++ ABI, 5.1)."""


def gcc_name(name: Name, version: int = USUAL_VERSION) -> str:
    """The name under which GCC looks a function up; "" where it can't.

    >>> gcc_name("hot.isra.0"), gcc_name("_ZN5ShapeC4EPKc"), gcc_name("_ZN5ShapeD4Ev.cold")
    ('hot', '_ZN5ShapeC2EPKc', '_ZN5ShapeD2Ev')
    >>> gcc_name("f._omp_fn.0.cold"), gcc_name("f._omp_fn.0.cold", 3)
    ('f', 'f._omp_fn.0')
    """
    return base_variant(symbol_name(str(name), version))


def symbol_name(name: str, version: int) -> str:
    """A symbol's name less what GCC appends to those of clones; "" for one that it did not name."""
    if version <= USUAL_VERSION:
        return name.partition(".")[0]
    clones = _CLONE.search(name)
    ends = clones is not None and clones.end() == len(name)
    plain = name[: clones.start()] if clones and ends else name
    return "" if plain.startswith(".") else plain


def base_variant(name: str) -> str:
    """A name of all variants of a constructor or destructor (C4, D4), as the base's (C2, D2).

    >>> base_variant("_ZN3BoxIiEC4IJlEEES_"), base_variant("_ZN2C4E"), base_variant("_ZN1AC1Ev")
    ('_ZN3BoxIiEC2IJlEEES_', '_ZN2C4E', '_ZN1AC1Ev')
    """
    digit = _unified(name) if name.startswith("_ZN") else 0
    return f"{name[:digit]}2{name[digit + 1 :]}" if digit else name


def _unified(name: str) -> int:
    """Where the number of a variant stands in a nested name; 0 if it has none."""
    at, open_ = len("_Z"), list[str]()
    while (open_ or at == len("_Z")) and (token := _TOKEN.match(name, at)):
        what, at = token[0], token.end()
        if what.isascii() and what.isdigit():
            at += int(what)
        elif what in ("C4", "D4") and open_ == ["N"]:
            return at - 1
        elif what in _OPENING:
            open_.append(what)
        elif what == "E" and open_.pop() == "Ul":
            at = max(at, name.find("_", at) + 1)  # its number
    return 0
