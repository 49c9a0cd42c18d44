"""A stored sample profile: is there one, is it this program's, how stale is it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.analyses.quality import Gates, Profile, measure
from lbr2pgo.build import MOST_MISSING
from lbr2pgo.profiles.formats import read_written
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.program.program import Program
from lbr2pgo.support.errors import InputError


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to build with a profile, and what to tell the user of it."""

    usable: bool
    warning: str | None


def judge(profile: Path, binary: Path) -> Verdict:
    """Look at a profile beside a plain build of the program.

    A missing one is not used, a stale one is. Raises InputError if it is no sample profile, or
    another program's.
    """
    if not profile.exists():
        return Verdict(False, f"there is no profile {profile} yet: this is a plain build")
    samples = read_written(profile)
    if not isinstance(samples, SampleProfile):
        raise InputError(
            "no sample profile",
            where=str(profile),
            cure="Make one of a recording with lbr2pgo convert --llvm.",
        )
    quality = measure(Profile(samples=samples), program := Program.open(binary))
    stale = quality.stale
    if stale is None:
        return Verdict(True, f"nobody can tell how well {profile} fits: {binary} has no DWARF")
    if list(Gates({"missing": MOST_MISSING}).failed(quality)):
        raise InputError(
            f"the profile of another program: {stale.functions:.0%} of its counts are in functions "
            f"that {program.image.path} lacks ({', '.join(stale.missing)})",
            where=str(profile),
            cure="Record this program, or name its own profile.",
        )
    if stale.share == 0:
        return Verdict(True, None)
    return Verdict(
        True,
        f"{profile} is stale: {binary} has no place for {stale.share:.2%} of its counts; "
        "it is used all the same",
    )
