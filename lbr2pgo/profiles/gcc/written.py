"""Written profiles for GCC: recognised, read, and shown as LLVM's text form."""

from __future__ import annotations

from collections.abc import Iterator

from lbr2pgo.profiles.formats.base import Reader
from lbr2pgo.profiles.gcc import afdo
from lbr2pgo.profiles.gcc.afdo import GccProfile
from lbr2pgo.profiles.llvm import written


def lines(profile: GccProfile) -> Iterator[str]:
    """As of a sample profile; before them, when functions were first sampled."""
    for name, time in sorted(profile.first_seen.items(), key=lambda item: (item[1], str(item[0]))):
        yield f"# first sampled at {time} ns: {name}"
    yield from written.lines(profile.samples)


def of_function(profile: GccProfile, function: str) -> Iterator[str] | None:
    """The function itself, then a comment for each inlined copy; None if there is neither."""
    return written.of_function(profile.samples, function)


def functions(profile: GccProfile) -> set[str]:
    """Names of all functions, of those that are inlined too."""
    return written.functions(profile.samples)


READERS = (Reader(afdo.is_afdo, afdo.read, lines, of_function, functions),)
