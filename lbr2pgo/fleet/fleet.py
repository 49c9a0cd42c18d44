"""Recordings and counts of many machines: counted file by file, added up, profiles of every build.

Counting is a task a file. Sums are exact, so the result is the same to the byte whatever the
number of workers and the order in which they end. What is counted is kept under its content: a
run that was interrupted goes on, and a file that comes twice is counted once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import partial
from pathlib import Path
from time import time
from typing import Any

from lbr2pgo.fleet.counting import (
    CountingPlan,
    FileOutcome,
    close_programs,
    count_file,
    saved_counts,
)
from lbr2pgo.fleet.fleet_files import FleetFile, fleet_files
from lbr2pgo.fleet.images import Images, ImagesOptions, convert_images
from lbr2pgo.fleet.merge import Merge, MergeOptions, merge_files
from lbr2pgo.fleet.runners import Runner
from lbr2pgo.profiles.base import Output
from lbr2pgo.profiles.counts.format import refuse_without_parquet
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError, OutputError

_GROUP = 64
"""Files that one task adds up."""
_FINE = 1 << 16
"""Weights by age are multiples of one part of this: whole numbers on the way, divided once."""
_DAY = 86400

Watch = Callable[[FileOutcome, int], None]
"""Called with each file that is done, and how many there are."""


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """What to count, and what to make of it."""

    inputs: tuple[str, ...]
    output: Path
    """Counts of all builds, as Parquet."""
    plan: CountingPlan
    profiles: tuple[Output, ...] = ()
    """Of each build whose program is found, named with `{name}` and `{build_id}`."""
    hosts: tuple[str, ...] = ()
    """Patterns of hosts to be counted; all without any."""
    builds: tuple[str, ...] = ()
    """How the build-ids begin that are wanted, of programs in some versions; all without any."""
    half_life: Fraction | None = None
    """Days in which a file's weight halves, counted back from the newest file."""
    keeps_duplicates: bool = False
    """Count files of the same content each, as of machines that do just the same."""

    def __post_init__(self) -> None:
        if self.output.suffix != ".parquet":
            what = f"{self.output} must end in .parquet, which holds several builds"
            raise OutputError(what, cure="Name it so.")
        refuse_without_parquet(self.output)


@dataclass(frozen=True, slots=True)
class Fleet:
    """What became of every file."""

    counted: tuple[FileOutcome, ...]
    duplicates: tuple[FileOutcome, ...]
    other_hosts: tuple[FileOutcome, ...]
    unreadable: tuple[FileOutcome, ...]
    too_old: tuple[FileOutcome, ...]
    """Of so many half-lives that nothing is left of them."""
    merge: Merge
    images: Images | None


def run_fleet(options: FleetOptions, runner: Runner, watch: Watch | None = None) -> Fleet:
    """Count, add up, and write; files that can't be read are listed in what comes back.

    Raises InputError where nothing can be counted, and OutputError.
    """
    options.plan.store.mkdir(parents=True, exist_ok=True)
    outcomes = _count(options, runner, watch or (lambda *_: None))
    sorted_out = _sorted_out(outcomes, options)
    kept = sorted_out["counted"]
    if not kept:
        told = [f"{each.file.name}: {each.problem}" for each in outcomes if each.problem]
        cure = told[0] if told else "Look at --host."
        raise InputError("no file is left to be added up", cure=cure)
    weights = _weights(kept, options.half_life)
    sorted_out["too_old"] = [each for each in kept if not weights[each.file]]
    sorted_out["counted"] = [each for each in kept if weights[each.file]]
    merge = _add_up(sorted_out["counted"], weights, options, runner)
    images = _profiles(options, sorted_out["counted"], merge) if options.profiles else None
    return Fleet(**{name: tuple(each) for name, each in sorted_out.items()},
                 merge=merge, images=images)  # fmt: skip


def _count(options: FleetOptions, runner: Runner, watch: Watch) -> list[FileOutcome]:
    """What became of each file, by name."""
    files = fleet_files(options.inputs)
    done: list[FileOutcome] = []
    known: dict[object, Any] = {}
    now = int(time())
    try:
        for outcome in runner.each(partial(count_file, plan=options.plan), files):
            watch(outcome, len(files))
            done.append(_kept(outcome, now, known))
    finally:
        close_programs()
    return sorted(done, key=lambda each: each.file)


def _kept(outcome: FileOutcome, now: int, known: dict[object, Any]) -> FileOutcome:
    """As it is kept: what a million files have in common once, and none younger than now.

    A file from the future is one of a wrong clock: beside it all others would be old.
    """
    file, notes = outcome.file, outcome.notes
    if file.time > now + _DAY:
        notes += ("was written in the future, by its time: it counts as if it were now",)
    if file.time > now:
        file = replace(file, time=now)
    return replace(
        outcome, file=file, notes=known.setdefault(notes, notes),
        hosts=known.setdefault(outcome.hosts, outcome.hosts),
        binaries=known.setdefault(outcome.binaries, outcome.binaries),
    )  # fmt: skip


def _sorted_out(
    outcomes: Iterable[FileOutcome], options: FleetOptions
) -> dict[str, list[FileOutcome]]:
    kinds: dict[str, list[FileOutcome]] = {
        kind: [] for kind in ("counted", "duplicates", "other_hosts", "unreadable", "too_old")
    }
    seen: set[str] = set()
    for outcome in outcomes:
        kinds[_kind(outcome, options, seen)].append(outcome)
        seen.add(outcome.content or "")
    return kinds


def _kind(outcome: FileOutcome, options: FleetOptions, seen: set[str]) -> str:
    if outcome.content is None:
        return "unreadable"
    is_wanted = any(fnmatchcase(h, wanted) for h in outcome.hosts for wanted in options.hosts)
    if options.hosts and not is_wanted:
        return "other_hosts"
    is_again = outcome.content in seen and not options.keeps_duplicates
    return "duplicates" if is_again else "counted"


def _weights(
    outcomes: Sequence[FileOutcome], half_life: Fraction | None
) -> Mapping[FleetFile, int]:
    """Whole numbers; `_FINE` of the newest file where age counts."""
    if half_life is None:
        return {each.file: 1 for each in outcomes}
    newest = max(each.file.time for each in outcomes)

    def weight(file: FleetFile) -> int:
        age = float((newest - file.time) / (half_life * _DAY))
        return round(_FINE * math.exp2(-age))

    return {each.file: weight(each.file) for each in outcomes}


@dataclass(frozen=True, slots=True)
class _Group:
    """Saved counts that one task adds up, each as often as it weighs."""

    saved: tuple[Path, ...]
    weights: Mapping[Path, Fraction] = field(default_factory=dict)
    output: Path = Path()


def _merge_group(group: _Group) -> tuple[Path, Counter[str | None]]:
    """The sum, and how many of the files had counts of each build."""
    merge = merge_files(MergeOptions(group.saved, group.output, group.weights))
    return group.output, Counter({each.counts.build_id: each.files for each in merge.builds})


def _add_up(
    outcomes: Sequence[FileOutcome],
    weights: Mapping[FleetFile, int],
    options: FleetOptions,
    runner: Runner,
) -> Merge:
    """A tree of sums; what age makes of the counts is rounded in the last one."""
    total: dict[Path, Fraction] = {}
    for each in outcomes:
        path = saved_counts(options.plan, each.content or "")
        total[path] = total.get(path, Fraction(0)) + weights[each.file]
    whole = 1 if options.half_life is None else _FINE
    parts: list[Path] = []
    files = Counter[str | None]()
    try:
        while len(total) > _GROUP:
            groups = list(_groups(total, options.plan.store, len(parts)))
            parts += (group.output for group in groups)
            merged = dict(runner.each(_merge_group, groups))
            files = files or sum(merged.values(), files)  # further on, it is sums that are added up
            total = dict.fromkeys(sorted(merged), Fraction(1))
        exact = {path: weight / whole for path, weight in total.items()}
        merge = merge_files(
            MergeOptions(tuple(total), options.output, exact, builds=options.builds)
        )
    finally:
        for path in parts:
            path.unlink(missing_ok=True)
    if not files:
        return merge
    builds = (replace(each, files=files[each.counts.build_id]) for each in merge.builds)
    return replace(merge, builds=tuple(builds))


def _groups(total: Mapping[Path, Fraction], store: Path, first: int) -> Iterator[_Group]:
    """What each task adds up; sums are numbered from the first one on."""
    paths = sorted(total)
    for number, start in enumerate(range(0, len(paths), _GROUP), first):
        chosen = tuple(paths[start : start + _GROUP])
        weights = {path: total[path] for path in chosen}
        yield _Group(chosen, weights, store / f"part-{number:06}.parquet")


def _profiles(
    options: FleetOptions, outcomes: Sequence[FileOutcome], merge: Merge
) -> Images | None:
    """Of every build with counts whose program was found or is named."""
    named = {Path(path): name for each in outcomes for path, name in each.binaries}
    named |= {path.resolve(): path.name for path in options.plan.binaries}
    builds = {build.counts.build_id for build in merge.builds}
    there = {path: named[path] for path in sorted(named) if Image.open(path).build_id in builds}
    if not there:
        return None
    return convert_images(
        ImagesOptions(
            profiles=(options.output,), binaries=tuple(there), names=there, skips_absent=True,
            outputs=options.profiles, strict=options.plan.strict,
        )
    )  # fmt: skip
