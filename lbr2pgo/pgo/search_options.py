"""What the user asks of a search."""

from __future__ import annotations

from dataclasses import dataclass

from lbr2pgo.pgo.kinds import SHIPPED, ProfileKind
from lbr2pgo.pgo.loop_options import LoopOptions
from lbr2pgo.pgo.training import Training
from lbr2pgo.support.errors import InputError


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """One search; raises InputError on construction where nothing can be tried."""

    loop: LoopOptions
    """Its kind of profile is left to the search; `bolt` or `propeller` allow to lay out.

    `instrumented` has counters in the program beside, to compare with; they are not chosen.
    """
    tests: tuple[str, ...]
    """Commands that judge; with none, those of the training do."""
    confirm: tuple[str, ...]
    """Commands that don't, and show what the winner is worth; with none, every third test does."""
    budget: float | None
    """Seconds after which nothing is begun, and what runs is stopped.

    Layouts that were asked for have some of it to themselves.
    """
    jobs: int

    def __post_init__(self) -> None:
        if self.loop.train is None:
            raise InputError("there is no training command", cure="Give --train 'CMD'.")
        if self.loop.cargo:
            raise InputError("rustc has one kind of profile", cure="Leave out --search.")
        if self.loop.startup:
            raise InputError(
                "a search judges by cycles, and not by how a program starts",
                cure="Leave out --search, or --startup: the winner can be ordered by another loop.",
            )
        if self.jobs < 1:
            raise InputError(f"{self.jobs} jobs build nothing", cure="Give --jobs 1 or more.")
        if self.jobs > 1 and self.loop.binary.is_absolute():
            raise InputError(
                "every copy of the tree would build this one file",
                where=str(self.loop.binary),
                cure="Name --binary relative to the working directory, or leave out --jobs.",
            )

    @property
    def training(self) -> Training:
        """How to train."""
        assert self.loop.train is not None
        return self.loop.train

    @property
    def kinds(self) -> tuple[ProfileKind, ...]:
        """What is tried of the build that is shipped; GCC knows lines alone."""
        return SHIPPED if self.loop.compiler == "clang" else SHIPPED[:1]

    @property
    def held_back(self) -> tuple[str, ...]:
        """The commands that have no part in the choice."""
        return self.confirm or self.tests[2::3]

    @property
    def judges(self) -> tuple[str, ...]:
        """The commands that judge."""
        tests = tuple(test for test in self.tests if test not in self.held_back)
        return tests or self.training.commands

    @property
    def commands(self) -> tuple[str, ...]:
        """What is counted of every kind."""
        return tuple(dict.fromkeys((*self.judges, *self.training.commands)))
