"""A written profile carried from one source tree to another, if that makes sense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lbr2pgo.profiles.carried.account import Account, Way
from lbr2pgo.profiles.carried.fates import mentions, source_name
from lbr2pgo.profiles.carried.source_tree import SourceTree
from lbr2pgo.profiles.carried.successors import Successors
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.reader import WrittenProfile
from lbr2pgo.profiles.registry import output, read_written
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

_CLEARLY, _FEW = 2, 3
"""How many times as many functions fit the new tree better as the old one, and how many at least,
for the profile to be of the new tree."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A profile for a later source tree."""

    profile: WrittenProfile[Any]
    content: Any
    """As its reader's `merging` writes it."""
    account: Account

    def write(self, path: Path) -> None:
        """In the format of the old profile; raises OutputError where it can't be written."""
        assert self.profile.reader.merging is not None
        self.profile.reader.merging.write(self.content, path)

    @property
    def verdict(self) -> str:
        """In a sentence."""
        return f"{self.account.carried():.1%} of the counts carried"

    def __repr__(self) -> str:
        return f"<Carried: {self.verdict}>"

    def next_step(self, path: Path) -> str:
        """What to do with it, once it is written to a path."""
        return output(self.profile.format, path).next_step


def carry(path: Path, old: SourceTree, new: SourceTree) -> Carried:
    """The profile at a path, which was made of `old`, for `new`; nothing is written.

    Raises InputError for a profile that tells of no source lines, for trees that are not its own
    or not related, and for trees that were exchanged.
    """
    profile = read_written(path)
    if profile is None:
        cure = "Give a sample profile of source lines (convert --llvm or --afdo)."
        raise InputError("is no written profile", where=str(path), cure=cure)
    successors = Successors(old, new)
    samples = profile.samples
    if samples is not None:
        _refuse_other_trees(samples, successors, path)
    done = profile.reader.carried(profile.content, successors)
    if done is None:
        cure = "Carry a sample profile of source lines (convert --llvm --probes off, or --afdo)."
        raise InputError("does not tell of source lines", where=str(path), cure=cure)
    content, account = done
    total = account.total()
    if total[Way.LOST] == total.total():
        cure = "Name two revisions of one program's source."
        raise InputError(f"nothing in {new.name} is what {old.name} had", cure=cure)
    return Carried(profile, content, account)


def _refuse_other_trees(samples: SampleProfile, successors: Successors, path: Path) -> None:
    """Raise InputError where the old tree is not that of the profile, or the new one rather is."""
    old, new = successors.old, successors.new
    known = older = newer = 0
    for name, own in mentions(samples).items():
        mine, theirs = (
            max(map(own.fit, tree.by_name.get(source_name(name), ())), default=None)
            for tree in (old, new)
        )
        known += mine is not None
        if mine is not None and theirs is not None:
            older, newer = older + (mine > theirs), newer + (theirs > mine)
    if not known and any(isinstance(function.name, int) for function in samples.functions.values()):
        cure = "Carry one with names (convert --llvm without --md5)."
        raise InputError("has hashes in place of names", where=str(path), cure=cure)
    if not known:
        cure = "Name the tree that the profiled program was built of."
        raise InputError(f"{old.name} has no function of this profile", where=str(path), cure=cure)
    if newer >= _FEW and newer > _CLEARLY * older:
        cure = f"Exchange them, or name the tree that the profile is of in place of {old.name}."
        raise InputError(f"is of {new.name}, not of {old.name}", where=str(path), cure=cure)
