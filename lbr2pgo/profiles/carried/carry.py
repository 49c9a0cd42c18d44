"""A written profile carried from one source tree or build to another, if that makes sense."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbr2pgo.profiles.carried.account import Account
from lbr2pgo.profiles.carried.fates import mentions, source_name
from lbr2pgo.profiles.carried.source_tree import SourceTree, two_trees
from lbr2pgo.profiles.carried.successors import Successors
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.reader import Profile, WrittenProfile
from lbr2pgo.profiles.registry import output, read_written
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

if TYPE_CHECKING:
    from lbr2pgo.program.program import Program

_CLEARLY, _FEW = 2, 3
"""How many times as many functions fit the new tree better as the old one, and how many at least,
for the profile to be of the new tree."""
_RELATED = 0.05
"""Share of the counts that goes from a program to the next, however much has changed."""
_MUCH_LOST = 0.02
"""Share of the counts without a place that makes a program doubtful."""


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


def carry(path: Path, old: Path | None, new: Path | None, git: str | None = None) -> Carried:
    """The profile at a path, which is of `old`, for `new`: both are programs, or source trees.

    `git` names trees as `two_trees` has it. Raises InputError as the functions below.
    """
    if old is not None and new is not None and old.is_file() and new.is_file() and not git:
        from lbr2pgo.program.program import Program

        return carry_over_builds(path, Program.open(old), Program.open(new))
    return carry_over_sources(path, *two_trees(old, new, git))


def carry_over_sources(path: Path, old: SourceTree, new: SourceTree) -> Carried:
    """The profile at a path, which was made of `old`, for `new`; nothing is written.

    Raises InputError for a profile that tells of no source lines, for trees that are not its own
    or not related, and for trees that were exchanged.
    """
    profile = _read(path)
    successors = Successors(old, new)
    samples = profile.samples
    if samples is not None:
        _refuse_other_trees(samples, successors, path)
    done = profile.reader.carried(profile.content, successors)
    if done is None:
        cure = "Name the programs that it is of and for (--from ELF --to ELF)."
        raise InputError("does not tell of source lines", where=str(path), cure=cure)
    return _unless_all_is_lost(profile, done, old.name, new.name)


def carry_over_builds(path: Path, old: Program, new: Program) -> Carried:
    """The profile at a path, which is of the program `old`, for `new`; nothing is written.

    Raises InputError for a profile that tells of no code, for programs that are not its own or not
    related, and for programs that were exchanged.
    """
    profile = _read(path)
    if old.image.architecture != new.image.architecture:
        cure = "Name two builds of one program for one architecture."
        raise InputError(f"is no {old.image.architecture.name}", where=new.image.path, cure=cure)
    done = profile.reader.carried_to_build(profile.content, old, new, str(path))
    if done is None:
        cure = "Name the source trees that it is of and for (--from DIR --to DIR)."
        raise InputError("does not tell of code", where=str(path), cure=cure)
    _refuse_other_builds(profile, old, new)
    return _unless_all_is_lost(profile, done, old.image.path, new.image.path)


def what_would_be_carried(profile: Profile, old: Program, new: Program) -> Account | None:
    """What becomes of the counts of a profile of the program `old` in `new`.

    None where nobody can tell: it tells of no code, or is of another program.
    """
    for form in profile.forms():
        try:
            _refuse_other_builds(form, old, new)
            done = form.reader.carried_to_build(form.content, old, new, str(form.path))
        except InputError:
            return None
        if done is not None:
            return done[1]
    return None


def _read(path: Path) -> WrittenProfile[Any]:
    profile = read_written(path)
    if profile is None:
        cure = "Give a profile that convert wrote."
        raise InputError("is no written profile", where=str(path), cure=cure)
    return profile


def _unless_all_is_lost(
    profile: WrittenProfile[Any], done: tuple[Any, Account], old: str, new: str
) -> Carried:
    content, account = done
    if account.carried() < _RELATED:
        raise InputError(f"nothing in {new} is what {old} had", cure="Name two of one program.")
    return Carried(profile, content, account)


def _refuse_other_builds(profile: WrittenProfile[Any], old: Program, new: Program) -> None:
    """Raise InputError where the old program is not that of the profile, or the new one is."""
    older, newer = (profile.beside(program).staleness(program) for program in (old, new))
    if older is None or newer is None:
        return
    if older.lost > _MUCH_LOST and _CLEARLY * newer.lost < older.lost:
        cure = "Exchange them, or name the program that was recorded first."
        what = f"is of {new.image.path}, not of {old.image.path}"
        raise InputError(what, where=str(profile.path), cure=cure)
    older.refuse(profile.path, old.image.path)


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
