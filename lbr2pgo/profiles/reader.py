"""What written profiles of every format are asked, and how one that can't tell says so.

A question that has no answer in a format is answered with None.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lbr2pgo.profiles.staleness import MOST_STALE
from lbr2pgo.support.dataclass import dataclass

if TYPE_CHECKING:
    from lbr2pgo.model.branch_counts import BranchCounts
    from lbr2pgo.profiles.carried.account import Account
    from lbr2pgo.profiles.carried.successors import Successors
    from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
    from lbr2pgo.profiles.staleness import Staleness
    from lbr2pgo.profiles.weights import ProfileWeights
    from lbr2pgo.profiles.work import Work
    from lbr2pgo.program.program import Program
    from lbr2pgo.support.arrays import U64

T = TypeVar("T")

Ran = Sequence[tuple[tuple[str, ...], int]]
"""Functions that ran: all names of each, and how many bytes of it ran, as often as they did."""


@dataclass(frozen=True, slots=True)
class ProfileOverlap:
    """How near two profiles are; each from 0 to 1."""

    similarity: float
    """Of how counts are distributed, within functions and among them: how many samples each
    profile has plays no part."""
    samples: float | None = None
    """Sum of the smaller counts over that of the larger ones, as they are."""
    functions: float | None = None
    """Functions in both over functions in either."""


@dataclass(frozen=True, slots=True)
class Merged(Generic[T]):
    """Written profiles added up."""

    content: T
    notes: tuple[str, ...] = ()
    """What was left out, a sentence each."""


@dataclass(frozen=True, slots=True)
class Merging(Generic[T]):
    """How written profiles of one kind are added up, by the rules of those who read them."""

    add: Callable[[Iterable[tuple[T, int]]], Merged[T]]
    """Of each content times its weight, gone through once. Raises InputError for kinds that don't
    go together."""
    write: Callable[[T, Path], None]
    """Raises OutputError where it can't be written."""


def lines_written(write: Callable[[T, BytesIO], None], content: T) -> Iterator[str]:
    """What a writer of text makes of a content, line by line."""
    stream = BytesIO()
    write(content, stream)
    written = stream.getvalue().decode("utf-8", "surrogateescape")
    return iter(written.removesuffix("\n").split("\n") if written else ())


class Reader(ABC, Generic[T]):
    """How written profiles of one form are read, shown as text, and asked."""

    kind: str
    """What such files are called; those of one kind compare, and add up."""
    has_counts: bool = False
    """Whether it tells, once it is `placed`, what ran of a program."""
    merging: Merging[T] | None = None
    """None where there are no rules for adding up."""

    @abstractmethod
    def recognises(self, head: bytes) -> bool:
        """Judge the head of a file (up to `HEAD_SIZE` bytes) by its content alone."""

    @abstractmethod
    def read(self, path: Path) -> T:
        """Raises InputError where the file is broken."""

    @abstractmethod
    def lines(self, content: T) -> Iterator[str]:
        """As text."""

    @abstractmethod
    def of_function(self, content: T, function: str) -> Iterator[str] | None:
        """Lines that concern a function; None if it is not there."""

    @abstractmethod
    def functions(self, content: T) -> Iterable[str]:
        """Names of all functions."""

    def samples(self, content: T) -> SampleProfile | None:
        """Counts of source lines or probes."""

    def counted(self, content: T) -> U64 | None:
        """(n,): the counts of all places that it tells of."""

    def staleness(self, content: T, program: Program) -> Staleness | None:
        """What it says of code that a program lacks."""

    def overlap(self, base: T, test: T) -> ProfileOverlap | None:
        """How near two of this kind are."""

    def weights(self, content: T) -> ProfileWeights | None:
        """How heavy functions and calls are."""

    def placed(self, content: T, program: Program, where: str) -> tuple[Reader[Any], Any]:
        """In the kind whose places are told without the program; most are of such a kind."""
        return self, content

    def belonging(
        self, content: T, program: Program, where: str, most_stale: float = MOST_STALE
    ) -> tuple[Reader[Any], Any]:
        """As `placed`; raises InputError where it does not belong to the program."""
        reader, placed = self.placed(content, program, where)
        stale = _staleness(reader, placed, program)
        if stale is not None:
            stale.refuse(where, program.image.path, most_stale=most_stale)
        return reader, placed

    def counts(self, content: T, program: Program) -> BranchCounts | None:
        """What ran of a program, of what is `placed` in it."""

    def carried(self, content: T, successors: Successors) -> tuple[T, Account] | None:
        """What it says of a later source tree, and how sure that is; None if it names no lines."""

    def carried_to_build(
        self, content: T, old: Program, new: Program, where: str
    ) -> tuple[T, Account] | None:
        """What it says of the old program, of the new one, and how sure that is.

        None if it does not tell of code. Raises InputError, which names the file (`where`).
        """

    def derived(self, work: Work, like: T | None) -> T | None:
        """What a recording would be in this form; `like` has options to take over."""


class Profile:
    """What `check` asks of a profile, be it a recording or a written one."""

    @property
    def samples(self) -> SampleProfile | None:
        """Counts of source lines or probes."""

    @property
    def counted(self) -> U64 | None:
        """(n,): the counts of all places that it tells of."""

    @property
    def conservation(self) -> float | None:
        """Share of the flow that leaves each block as often as it enters it."""

    @property
    def bias(self) -> float | None:
        """Of the positions in the recorded stacks."""

    @property
    def executed(self) -> float | None:
        """Share of what the program executes in functions that it tells of, by its own samples."""

    @property
    def ran(self) -> Ran | None:
        """What the program executes."""

    @property
    def functions(self) -> Set[str]:
        """Names of those that it tells of."""
        return frozenset()

    def staleness(self, program: Program) -> Staleness | None:
        """What it says of code that a program lacks."""

    def forms(self) -> Iterator[WrittenProfile[Any]]:
        """The written profiles that it is, or would be, the best to compare with first."""
        return iter(())

    def in_form_of(self, other: WrittenProfile[Any]) -> WrittenProfile[Any] | None:
        """The written profile of the same kind as another one that it is, or would be."""


@dataclass(frozen=True)
class WrittenProfile(Profile, Generic[T]):
    """A written profile, with what reads its format."""

    path: Path
    format: str
    """Name of its `OutputFormat`."""
    reader: Reader[T]
    content: T

    @property
    def samples(self) -> SampleProfile | None:
        """See `Profile`."""
        return self.reader.samples(self.content)

    @property
    def counted(self) -> U64 | None:
        """See `Profile`."""
        return self.reader.counted(self.content)

    @property
    def functions(self) -> frozenset[str]:
        """See `Profile`."""
        return frozenset(self.reader.functions(self.content))

    @cached_property
    def weights(self) -> ProfileWeights | None:
        """How heavy functions and calls are."""
        return self.reader.weights(self.content)

    def staleness(self, program: Program) -> Staleness | None:
        """See `Profile`."""
        return _staleness(self.reader, self.content, program)

    def forms(self) -> Iterator[WrittenProfile[Any]]:
        """See `Profile`."""
        return iter((self,))

    def in_form_of(self, other: WrittenProfile[Any]) -> WrittenProfile[Any] | None:
        """See `Profile`."""
        return self if self.reader.kind == other.reader.kind else None

    def beside(self, program: Program) -> WrittenProfile[Any]:
        """In the kind whose places are told without the program.

        Raises InputError where it is broken.
        """
        reader, content = self.reader.placed(self.content, program, str(self.path))
        return WrittenProfile(self.path, self.format, reader, content)

    def belonging(self, program: Program, most_stale: float = MOST_STALE) -> WrittenProfile[Any]:
        """`beside` the program; raises InputError where the profile does not belong to it."""
        reader, content = self.reader.belonging(self.content, program, str(self.path), most_stale)
        return WrittenProfile(self.path, self.format, reader, content)

    def counts(self, program: Program) -> BranchCounts | None:
        """What ran of the program."""
        return self.reader.counts(self.content, program)


def _staleness(reader: Reader[Any], content: Any, program: Program) -> Staleness | None:
    from lbr2pgo.profiles.namesakes import with_namesakes  # readers are told apart without it

    return with_namesakes(reader.staleness(content, program), program)


def overlap(base: Profile, test: Profile) -> ProfileOverlap | None:
    """Compare two profiles in a form that both have, or would have; None if there is none."""
    for form in (*base.forms(), *test.forms()):
        one = base.in_form_of(form)
        other = None if one is None else test.in_form_of(form)
        if one is not None and other is not None:
            return form.reader.overlap(one.content, other.content)
    return None
