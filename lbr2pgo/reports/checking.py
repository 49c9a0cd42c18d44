"""Is a profile good enough to ship: what is measured, with a verdict, from files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path

from lbr2pgo.analyses import stack_ends
from lbr2pgo.analyses.quality import MEASURES, Gates, Quality, measure
from lbr2pgo.analyses.quality_verdict import Bounds, Grade, Remark, remarks, whole
from lbr2pgo.analyses.recorded_profile import RecordedProfile
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit
from lbr2pgo.evidence.interrupted import INTERRUPTED
from lbr2pgo.profiles.carried.account import Account
from lbr2pgo.profiles.carried.carry import what_would_be_carried
from lbr2pgo.profiles.reader import Profile
from lbr2pgo.profiles.registry import read_written
from lbr2pgo.profiles.staleness import MOST_MISSING, MOST_STALE, MUCH_STALE, Staleness
from lbr2pgo.program.program import Program
from lbr2pgo.provenance.told import Provenance, provenance_doubts, read_provenance
from lbr2pgo.provenance.verifying import why_not_verified
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.replay.replaying import ReadingOptions
from lbr2pgo.reports.gather import gather, look_for_analyses
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.headway import Progress
from lbr2pgo.support.timings import Timings

VERIFY = "verify"
"""By this name a profile is refused that is not made again as it is."""
_COLUMNS = (
    Column("measure", "measure", Unit.TEXT, FIGURE),
    Column("value", "value", Unit.RATE, FIGURE),
    Column("gate", "gate", Unit.RATE),
    Column("verdict", "", Unit.TEXT),
    Column("meaning", "meaning", Unit.TEXT),
)


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What to judge, and by what."""

    profile: str
    """A recording (`-`: standard input), or a written profile."""
    binary: Path
    against: str | None = None
    """A recording of the binary, or a profile, to compare with."""
    new_build: Path | None = None
    """The build that is to use the profile, if it is not the one that was recorded."""
    gates: Gates = field(default_factory=Gates)
    chosen: ReadingOptions = field(default_factory=ReadingOptions)
    verify: tuple[Path, ...] = ()
    """Recordings of which the profile is to be made again."""

    def __post_init__(self) -> None:
        if "overlap" in self.gates.limits and self.against is None:
            raise InputError(
                "--min-overlap needs another profile to compare with",
                cure="Name it with --against.",
            )


@dataclass(frozen=True, slots=True)
class Checked:
    """A profile, judged."""

    profile: str
    quality: Quality
    remarks: tuple[Remark, ...]
    gates: Gates
    failed: tuple[str, ...]
    """Names of the measures by which it is refused."""
    notes: tuple[str, ...] = ()
    """Where the program is another build than the recorded one; what had to be assumed of
    recordings, and what is damaged in them."""
    provenance: Provenance | None = None
    """What is told beside the profile."""
    verified: str | None = None
    """What came of making it again, a sentence; None where nobody asked."""
    carried: Account | None = None
    """What `lbr2pgo carry` would make of it for a later build."""

    @property
    def passed(self) -> bool:
        """Whether no gate refuses it, and it is the program's."""
        return not self.failed

    @property
    def grade(self) -> Grade | None:
        """By what usually matters; None where nobody can tell."""
        return whole(self.remarks) if self.remarks else None

    @property
    def verdict(self) -> str:
        """Whether to ship it: by the gates, or where there are none by what usually matters."""
        if self.grade is not None and self.grade.is_wrong:
            return self.grade.value
        if self.gates.limits or VERIFY in self.failed:
            return f"refused by {', '.join(self.failed)}" if self.failed else "passed"
        if self.grade is None:
            return "nobody can tell; the profile, or the binary, has nothing to tell it by"
        return self.grade.value

    @property
    def measures(self) -> Table:
        """Each measure with its value, if it can be known, and its gate, if it has one."""
        limits = self.gates.limits
        rows = tuple(
            (
                name,
                value,
                limits.get(name),
                None if name not in limits else "failed" if name in self.failed else "passed",
                MEASURES[name],
            )
            for name, value in self.quality.values().items()
        )
        return Table("check", f"{os.path.basename(self.profile)}: {self.verdict}", _COLUMNS, rows)

    def __repr__(self) -> str:
        return f"<Checked {self.profile}: {self.verdict}>"

    def _repr_html_(self) -> str:
        return self.measures._repr_html_()


def check(
    options: CheckOptions, progress: Progress | None = None, timings: Timings | None = None
) -> Checked:
    """Measure a profile, and judge it.

    Raises InputError for what can't be read, and for an `against` that is another program's or of
    another kind.
    """
    path = Path(options.profile)
    provenance = None if options.profile == "-" else read_provenance(path)
    unverified = why_not_verified(path, options.binary, options.verify) if options.verify else None
    program = Program.open(options.binary)
    timings = timings or Timings()
    against, gates = options.against, options.gates
    load = partial(load_profile, program=program, chosen=options.chosen, progress=progress,
                   timings=timings)  # fmt: skip
    profile, old = load(options.profile), None if against is None else load(against)
    recorded = profile.recorded if isinstance(profile, RecordedProfile) else program
    build = program if options.new_build is None else Program.open(options.new_build)
    with timings.stage("measure"):
        quality = measure(profile, build, old)
    if old is not None:
        _refuse_unlike(options, quality, old.staleness(program), _bounds(gates, old))
    failed = list(gates.failed(quality))
    bounds = _bounds(gates, profile, is_later=build is not recorded)
    said = (*remarks(quality, bounds), *_selected(profile))
    failed_by = "missing" if whole(said) is Grade.OTHER_PROGRAM else "stale"
    if whole(said).is_wrong and failed_by not in failed:
        failed.append(failed_by)
    if unverified is not None:
        failed.append(VERIFY)
    verified = unverified or "made again of its recordings, to the byte" if options.verify else None
    other_build = () if recorded is program else _of_other_build(options, recorded)
    doubts = provenance_doubts(provenance, path)
    notes = dict.fromkeys((*doubts, *other_build, *_notes(profile), *_notes(old)))
    carried = None if build is recorded else what_would_be_carried(profile, recorded, build)
    return Checked(
        options.profile, quality, said, gates, tuple(failed), tuple(notes), provenance, verified,
        carried,
    )  # fmt: skip


def check_recordings(recordings: Sequence[Path], binary: Path) -> tuple[Remark, ...]:
    """What is to be said of recordings of a program that make one profile.

    Raises InputError for what can't be read, and EmptyProfileError where they hold nothing of it.
    """
    program = Program.open(binary)
    profile = _recorded(Inputs(tuple(recordings), binary), program)
    quality = measure(profile, program)
    return (*remarks(quality, _bounds(Gates(), profile)), *_selected(profile))


def _of_other_build(options: CheckOptions, recorded: Program) -> tuple[str]:
    """Where the recorded build was kept, the one that is named is to use the profile."""
    said = f"{options.binary} was built anew since {recorded.image.path} was recorded"
    judged = "" if options.new_build is not None else ", and is what the profile is to fit"
    return (f"{said}{judged}",)


def _notes(profile: Profile | None) -> tuple[str, ...]:
    return profile.found.notes if isinstance(profile, RecordedProfile) else ()


def _selected(profile: Profile) -> Iterator[Remark]:
    """What is to be said of a recording of some branches alone."""
    doubt = profile.found.seems_selected if isinstance(profile, RecordedProfile) else None
    if doubt is not None:
        yield Remark(Grade.BAD, doubt, "Record all branches (perf record -b).")


def _bounds(gates: Gates, profile: Profile, *, is_later: bool = False) -> Bounds:
    """From which shares on a profile is not the program's, unless gates allow for more.

    A recording beside what was recorded, as it seems, is poor where runs contradict the code.
    """
    missing = max(MOST_MISSING, gates.limits.get("missing", 0.0))
    # What stands in functions that are missing has no place either.
    stale = max(MOST_STALE, gates.limits.get("stale", 0.0), gates.limits.get("missing", 0.0))
    is_own = isinstance(profile, RecordedProfile) and profile.found.contradiction is None
    if is_own and not is_later:  # Runs that contradict the code are left out, and mislead nobody.
        return Bounds(1.0, missing, MUCH_STALE, MOST_STALE)
    return Bounds(stale, missing)


def _refuse_unlike(
    options: CheckOptions, quality: Quality, stale: Staleness | None, bounds: Bounds
) -> None:
    """Raise InputError for an old profile that is not the program's, or of another kind."""
    old = str(options.against)
    if stale is not None:
        stale.refuse(old, options.binary, bounds.missing, bounds.most_stale)
    if quality.overlap is None:
        raise InputError(
            f"has nothing that compares with {options.profile}",
            where=old,
            cure="Compare profiles of one kind, or either with a recording.",
        )


def load_profile(
    path: str,
    program: Program,
    chosen: ReadingOptions | None = None,
    progress: Progress | None = None,
    timings: Timings | None = None,
) -> Profile:
    """Read a profile, or replay the chosen samples of a recording."""
    written = None if path == "-" else read_written(Path(path))
    if written is not None:
        return written.beside(program)
    chosen = chosen or ReadingOptions()
    inputs = Inputs(
        (Path(path),), Path(program.image.path), counting=chosen.counting, strict=chosen.strict
    )
    return _recorded(inputs, program, progress, timings)


def _recorded(
    inputs: Inputs,
    program: Program,
    progress: Progress | None = None,
    timings: Timings | None = None,
) -> RecordedProfile:
    asks = look_for_analyses((stack_ends.NAME,), also=(INTERRUPTED,))
    found = read_and_replay(inputs, progress, timings, asks=asks)
    found.refuse_nothing()
    evidence = gather(found).evidence
    bias = stack_ends.position_bias(evidence)
    is_other = Path(found.program.image.path) != Path(program.image.path)
    recorded = found.program if is_other else program
    return RecordedProfile(found, recorded, bias, evidence.found(INTERRUPTED))
