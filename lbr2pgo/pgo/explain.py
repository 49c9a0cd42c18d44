"""Two builds of a program run on the same input, and what made the difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from lbr2pgo.analyses.costs import costs
from lbr2pgo.analyses.explanation import ExplainedBuild, explain
from lbr2pgo.analyses.table import Table
from lbr2pgo.model.exact_counts import ExactCounts
from lbr2pgo.pgo.measure import candidate_of, count_exactly
from lbr2pgo.pgo.remarks import inlining
from lbr2pgo.pgo.workplace import Workplace
from lbr2pgo.program.program import Program
from lbr2pgo.sources.exact_counts import image_of
from lbr2pgo.support.errors import InputError

_BOLTED = ".note.bolt_info"


@dataclass(frozen=True, slots=True)
class Explained:
    """What two builds did in the same run."""

    a: ExplainedBuild
    b: ExplainedBuild
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    """What can't be known, and why."""


def explain_builds(
    a: Path, b: Path, place: Path, command: str, source: Path | None = None
) -> Explained:
    """Count a command with either build, under the software LBR, and compare.

    The command names the binary's `place`, or finds it there; what is there stays. It reads
    `source`, or nothing. Raises
    InputError where the builds do not the same work, or one of them does not run.
    """
    programs = [Program.open(build) for build in (a, b)]
    notes = tuple(_unknown_sources(programs))
    candidates = [candidate_of(command, place, build, source=source) for build in (a, b)]
    if any(each.swap for each in candidates) and not place.is_file():
        raise InputError(
            f"is not there, and not in the command: {command}",
            where=str(place),
            cure="Let the command name --binary, or find it there.",
        )
    with TemporaryDirectory(prefix="lbr2pgo-") as folder:
        exact = [ExactCounts.load(file) for _, file in count_exactly(candidates, Path(folder))]
    first, second = (
        _build(*each, in_source=not notes) for each in zip((a, b), programs, exact, strict=True)
    )
    return Explained(first, second, explain(first, second), notes)


def _build(path: Path, program: Program, exact: ExactCounts, *, in_source: bool) -> ExplainedBuild:
    image = image_of(exact, program.image.layout, f"the run of {path}")
    found = costs(exact, image, program, in_source=in_source)
    return ExplainedBuild(str(path), exact.totals, found, inlining(path))


def _unknown_sources(programs: list[Program]) -> Iterator[str]:
    """Why code can't be told by its source in both alike; then it is told by symbols."""
    for program in programs:
        if program.image.section(_BOLTED) is not None:
            why = "was laid out by llvm-bolt, and its debug information still tells of the old code"
        elif not program.debug_info().present:
            why = "has no debug information"
        else:
            continue
        yield f"{program.image.path} {why}: functions are those of symbols, with what they inline."


def find_build(name: str, directory: Path, binary: Path) -> Path:
    """A build by its path, or by what a loop or a search calls it that worked in a directory.

    A loop has `before`, `after` and `propelled`; a search `plain`, and kinds of profiles such as
    `probes-O1` and `lines+bolt`. Raises InputError, with what there is, where it is not found.
    """
    if Path(name).is_file():
        return Path(name)
    there = dict(_builds(directory, binary))
    if name not in there:
        raise InputError(
            "there is no such build",
            where=name,
            cure=f"In {directory} are: {', '.join(there) or 'none'}. A path does as well.",
        )
    return there[name]


def _builds(directory: Path, binary: Path) -> Iterator[tuple[str, Path]]:
    found = {"bolt": Workplace(directory, binary).laid_out}
    for name in ("before", "marked", "after", "propelled", "ordered"):
        found[name] = Workplace(directory, binary).file(name)
    for folder in sorted(filter(Path.is_dir, directory.glob("*"))):
        work = Workplace(folder, binary)
        found.setdefault("plain", work.plain)
        found[folder.name] = work.rebuilt
        for layout in ("bolt", "propeller"):
            found[f"{folder.name}+{layout}"] = work.file(layout)
    return ((name, path) for name, path in found.items() if path.is_file())
