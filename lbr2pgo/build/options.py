"""What the user asks of a loop."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.build import STEPS
from lbr2pgo.build.measure import check_runs
from lbr2pgo.build.training import Training
from lbr2pgo.support.errors import InputError


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """One loop; checked on construction, before anything is built in vain.

    Raises InputError if nothing says where a profile comes from, for a senseless `runs`, or where
    the last step comes before the first.
    """

    build: str
    """A shell command that compiles anew with the flags that it is given."""
    binary: Path
    """What it builds."""
    train: Training | None
    profile: Path | None
    """A stored sample profile, in place of training for the compiler."""
    probes: bool
    """Build with pseudo probes, for a profile of these."""
    bolt: bool
    measure: str | None
    """The command to measure, if it is not the training's."""
    runs: int
    work: Path
    """Directory for the recordings, the profiles and the builds."""
    training_flags: tuple[str, ...] = ()
    """What the compiler is given besides where a build is only recorded for its profile."""
    cargo: bool = False
    """Flags are rustc's, and go through Cargo."""
    first: str = STEPS[0]
    """Of `STEPS`: what comes before was done by an earlier loop in this directory."""
    last: str = STEPS[-1]

    def __post_init__(self) -> None:
        check_runs(self.runs)
        if self.train is None and (self.profile is None or self.bolt):
            raise InputError(
                "there is no training command",
                cure="Give --train 'CMD'. Without BOLT, a stored --profile does as well.",
            )
        if STEPS.index(self.first) > STEPS.index(self.last):
            raise InputError(
                f"{self.last} comes before {self.first}", cure=f"In order: {', '.join(STEPS)}."
            )
        if self.cargo and self.probes:
            raise InputError("rustc knows no pseudo probes", cure="Leave out --probes.")
        if self.cargo and self.training_flags:
            raise InputError("training flags are clang's", cure="Leave out --training-flags.")
