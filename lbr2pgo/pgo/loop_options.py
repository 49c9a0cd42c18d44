"""What the user asks of a loop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from lbr2pgo.pgo import COMPILERS, STEPS
from lbr2pgo.pgo.goal import SPEED, Goal
from lbr2pgo.pgo.kinds import Layout
from lbr2pgo.pgo.timing import Rounds
from lbr2pgo.pgo.training import Training
from lbr2pgo.support.errors import InputError


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """One loop; checked on construction, before anything is built in vain.

    Raises InputError if nothing says where a profile comes from, or where the last step comes
    before the first.
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
    runs: Rounds
    work: Path
    """Directory for the recordings, the profiles and the builds."""
    training_flags: tuple[str, ...] = ()
    """What the compiler is given besides where a build is only recorded for its profile."""
    profile_flags: tuple[str, ...] = ()
    """What it is given besides where the profile is used."""
    both: bool = False
    """Record the plain build beside the training build, and merge the profiles."""
    again: bool = False
    """Record the build with the profile, and build once more with the profile of that."""
    compiler: str = COMPILERS[0]
    """Of `COMPILERS`: whose flags and profiles."""
    propeller: bool = False
    """Have clang and lld lay the program out."""
    clone_paths: bool = False
    """Have Propeller's layout clone hot paths."""
    startup: bool = False
    """Have lld order functions as the program's start wants them."""
    bolt_profile: Path | None = None
    """BOLT's YAML of an older build, in place of training for llvm-bolt."""
    instrumented: bool = False
    """Train with counters in the program, in place of samples."""
    cargo: bool = False
    """Flags are rustc's, and go through Cargo."""
    copy_of: Path | None = None
    """The working directory is a copy of this one: code is to name its files."""
    remarks: bool = False
    """Keep what the compiler says of inlining, beside each build, for `--explain`."""
    stable: bool = False
    """Write the compiler's profile to be committed."""
    provenance: bool = False
    """Say beside each profile what it came of."""
    or_lines: bool = False
    """Where clang can place no probes, lines do: nobody has asked for these by name."""
    model: str = ""
    """The front end that is simulated where builds are measured; "" is the usual one."""
    goal: Goal = SPEED
    unrelaxed: bool = False
    """Clang can place probes only in code that the linker leaves as it is."""
    first: str = STEPS[0]
    """Of `STEPS`: what comes before was done by an earlier loop in this directory."""
    last: str = STEPS[-1]

    @property
    def measured(self) -> str | None:
        """The command that is measured; None if there is none."""
        return self.measure or (self.train.whole_command if self.train else None)

    @property
    def is_measured_by_training(self) -> bool:
        """Whether that is what profiles were made of."""
        train = self.train
        return train is not None and self.measured in (*train.commands, train.whole_command)

    @property
    def by_lines(self) -> LoopOptions:
        """The same for a profile of source lines, as `--lines` asks for it."""
        train = self.train and replace(self.train, call_graph=False)
        return replace(self, probes=False, or_lines=False, train=train)

    @property
    def layout(self) -> Layout:
        """What lays the program out in the end."""
        return "bolt" if self.bolt else "propeller" if self.propeller else ""

    def __post_init__(self) -> None:
        lays_out_anew = self.bolt and self.bolt_profile is None
        if self.train is None and (self.profile is None or lays_out_anew):
            raise InputError(
                "there is no training command",
                cure="Give --train 'CMD'. A stored --profile does as well, for BOLT with a "
                "--bolt-profile beside it.",
            )
        if self.bolt_profile is not None and not self.bolt:
            raise InputError("--bolt-profile is for llvm-bolt", cure="Add --bolt.")
        if STEPS.index(self.first) > STEPS.index(self.last):
            raise InputError(
                f"{self.last} comes before {self.first}", cure=f"In order: {', '.join(STEPS)}."
            )
        self._check_counted()
        self._check_recorded()
        self._check_compiler()

    def _check_counted(self) -> None:
        """Counters know neither samples nor what these are told by."""
        train = self.train
        for option, is_given in (
            ("--profile", self.profile is not None),
            ("--probes", self.probes),
            ("--contexts", train is not None and train.call_graph),
            ("--exact", train is not None and train.exact),
            ("--both", self.both),
            ("--again", self.again),
            ("--stable", self.stable),
            ("--provenance", self.provenance),
        ):
            if self.instrumented and is_given:
                raise InputError(
                    f"{option} is for profiles of samples, --instrumented counts in the program",
                    cure=f"Leave out {option}.",
                )

    def _check_recorded(self) -> None:
        records = self.train is not None and self.profile is None
        chains = self.train is not None and self.train.call_graph
        loses_probes = self.propeller and self.probes
        for option, is_given, can, why in (
            ("--both", self.both, records and self.training_flags, "there is no training build"),
            ("--again", self.again, records, "nothing is recorded for the compiler"),
            ("--again", self.again, not chains, "contexts are recorded of a build for training"),
            ("--stable", self.stable, records, "nothing is recorded for the compiler"),
            ("--stable", self.stable, not self.both, "a merged profile has no such form"),
            ("--provenance", self.provenance, not self.both, "a merged profile has none"),
            ("--again", self.again, not loses_probes, "what Propeller lays out has no probes"),
            ("--startup", self.startup, self.train is not None, "there is no training command"),
        ):
            if is_given and not can:
                raise InputError(f"{option}: {why}", cure=f"Leave out {option}.")

    def _check_compiler(self) -> None:
        compiler = "rustc" if self.cargo else self.compiler
        wants_contexts = self.train is not None and self.train.call_graph
        for option, knows, is_given in (
            ("--probes", ("clang",), self.probes),
            ("--contexts", ("clang", "rustc"), wants_contexts),
            ("--propeller", ("clang",), self.propeller),
            ("--startup", ("clang", "gcc"), self.startup),
            ("--training-flags", ("clang", "gcc"), self.training_flags),
            ("--profile-flags", ("clang", "gcc"), self.profile_flags),
            ("--copy-of", ("clang", "gcc"), self.copy_of is not None),
            ("--remarks", ("clang",), self.remarks),
            ("--stable", ("clang", "rustc"), self.stable),
            ("--instrumented", ("clang",), self.instrumented),
            ("--compiler", ("clang", "gcc"), self.cargo and self.compiler != COMPILERS[0]),
        ):
            if is_given and compiler not in knows:
                raise InputError(
                    f"{compiler} can do nothing with {option}", cure=f"Leave out {option}."
                )
        if self.startup and self.layout:
            raise InputError(
                f"--startup and --{self.layout} each order all functions", cure="Give one of them."
            )
        if self.clone_paths and not self.propeller:
            raise InputError(
                "--propeller-clone-paths is for Propeller's layout", cure="Add --propeller."
            )
        if self.propeller and self.bolt:
            raise InputError(
                "Propeller and BOLT do the same work",
                cure="Give --propeller or --bolt, and compare what they gain.",
            )
