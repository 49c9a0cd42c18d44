"""Written profiles for GCC: recognised, read, and shown as LLVM's text form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lbr2pgo.profiles.afdo import afdo
from lbr2pgo.profiles.afdo.afdo import GccProfile
from lbr2pgo.profiles.base import Merged, Merging, Reader
from lbr2pgo.profiles.llvm import written
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.support.errors import InputError


def lines(profile: GccProfile) -> Iterator[str]:
    """As of a sample profile; before them, when functions were first sampled, and their files."""
    for name, time in sorted(profile.first_seen.items(), key=lambda item: (item[1], str(item[0]))):
        yield f"# first sampled at {time} ns: {name}"
    for name, file in sorted(profile.files.items(), key=str):
        yield f"# of {file}: {name}"
    yield from written.lines(profile.samples)


def of_function(profile: GccProfile, function: str) -> Iterator[str] | None:
    """The function itself, then a comment for each inlined copy; None if there is neither."""
    return written.of_function(profile.samples, function)


def functions(profile: GccProfile) -> set[str]:
    """Names of all functions, of those that are inlined too."""
    return written.functions(profile.samples)


def merged(profiles: Iterable[tuple[GccProfile, int]]) -> Merged[GccProfile]:
    """The sum: counts add up as those of sample profiles; a function's first time is the earliest.

    Raises InputError for profiles of different versions, which no GCC reads both of.
    """
    total = GccProfile(SampleProfile())
    for number, (profile, weight) in enumerate(profiles):
        total.version = total.version if number else profile.version
        if profile.version != total.version:
            raise InputError(
                f"version {profile.version} of GCC's format can't be merged with {total.version}",
                cure="Convert them all with the same --afdo-version.",
            )
        total.samples.merge(profile.samples, weight)
        total.files |= profile.files
        for name, time in profile.first_seen.items():
            total.first_seen[name] = min(total.first_seen.get(name, time), time)
    return Merged(total)


READERS = (
    Reader(
        afdo.is_afdo, afdo.read, lines, of_function, functions,
        Merging("GCC auto profiles", merged, afdo.write),
    ),
)  # fmt: skip
