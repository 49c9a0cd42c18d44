"""Builds of `fresh.py` with a layout by BOLT or Propeller on top, and what that changes.

Each is what `lbr2pgo pgo` makes, with counters in the program or without, and recordings of that
very build under the software LBR; `LAYOUTS` has the ways. What has been trained for the build below
is used again, but by Propeller alone, for which `pgo` takes profiles by source line. Where `pgo`
lays nothing out by a poor recording, the build is the one below. Sizes of code are of all of it:
llvm-bolt keeps the old one, and hot pages tell what runs.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fresh_builds import COUNTERS, WORK, ProgramBuilds
from fresh_figures import COUNTS, SAMPLED, Figures, interval
from which_profile import INSTRUMENTED, PLAIN

from lbr2pgo.pgo.post_link import BOLT_OPTIONS, bolt
from lbr2pgo.pgo.steps import put
from lbr2pgo.pgo.workplace import Workplace
from lbr2pgo.profiles.bolt.tool import needed_bolt


@dataclass(frozen=True, slots=True)
class Layout:
    """How a build is laid out."""

    step: str = "bolt"
    """Of `lbr2pgo pgo`, after which it is done."""
    words: tuple[str, ...] = ()
    """What else `pgo` is told."""
    bolted: tuple[str, ...] = ()
    """Options of llvm-bolt in place of those of `pgo`."""
    linked: str = ""
    """Flags of the linker."""
    is_usual: bool = False
    """As `pgo` does it: the instrumented build is laid out, too."""
    is_trained: bool = True
    """The profile is that of the build below."""


LAYOUTS = {
    "bolt": Layout(words=("--bolt",), is_usual=True),
    "bolt-hfsort": Layout(bolted=(*BOLT_OPTIONS, "-reorder-functions=hfsort")),
    "bolt-split-eh": Layout(bolted=(*BOLT_OPTIONS, "-split-eh")),
    "bolt-small-pages": Layout(bolted=(*BOLT_OPTIONS, "-no-huge-pages")),
    "huge-pages": Layout("rebuild", linked="-Wl,-z,max-page-size=0x200000,-z,separate-code"),
    "propeller": Layout("propeller", ("--propeller",), is_usual=True, is_trained=False),
    "propeller-contexts": Layout("propeller", ("--propeller", "--probes", "--contexts")),
}
"""llvm-bolt orders functions by cdsort and aligns their segment for huge pages, unless told."""
KEPT = "layouts.json"
_BINARY = Path("app")


def builds_of(layouts: Sequence[str]) -> list[str]:
    """Names of builds, `sampled+bolt` say."""
    return [
        f"{base}+{name}" for name in layouts for base in (INSTRUMENTED, SAMPLED)
        if base == SAMPLED or LAYOUTS[name].is_usual
    ]  # fmt: skip


def lay_out(builds: ProgramBuilds, build: str) -> None:
    """Make one, in the working directory, of what is there, unless it is there itself."""
    if Path(build).exists():
        return
    base, _, name = build.partition("+")
    layout = LAYOUTS[name]
    if layout.bolted:
        _bolt_otherwise(builds, f"{base}+bolt", build, layout.bolted)
    else:
        _lay_out_by_pgo(builds, base, build, layout)


def _bolt_otherwise(builds: ProgramBuilds, usual: str, build: str, options: Sequence[str]) -> None:
    lay_out(builds, usual)
    work = _workplace(usual)
    if work.fdata.exists():
        bolt(needed_bolt(), work.rebuilt, work.fdata, Path(build), options)
    else:
        put(work.rebuilt, Path(build))


def _lay_out_by_pgo(builds: ProgramBuilds, base: str, build: str, layout: Layout) -> None:
    work = _workplace(build)
    counting = ("--instrumented",) if base == INSTRUMENTED else ()
    first = _seeded(work, base, layout)
    steps = "--from-step", first, "--to-step", layout.step
    builds.pgo(work.directory, *counting, *layout.words, *steps, linked=layout.linked)
    made = {"bolt": work.laid_out, "propeller": work.propelled, "rebuild": work.rebuilt}
    if not made[layout.step].exists():
        print(f"{build} is not laid out: {work.directory}.log says why", file=sys.stderr)
    put(made[layout.step] if made[layout.step].exists() else work.rebuilt, Path(build))


def _workplace(build: str) -> Workplace:
    return Workplace(Path(f"pgo-{build}"), _BINARY)


def _seeded(work: Workplace, base: str, layout: Layout) -> str:
    """Take over what the build below was made of; gives the first step that is left."""
    below = Workplace(WORK, _BINARY)
    if base == INSTRUMENTED:
        files = {Path(PLAIN): work.plain, COUNTERS: work.file(COUNTERS.suffix[1:])}
    elif layout.is_trained and below.profile.exists():
        endings = "before", "marked", "training", below.suffix
        files = {below.file(each): work.file(each) for each in endings}
    else:
        return "build"
    work.begin()
    for source, target in files.items():
        if source.exists():
            shutil.copy2(source, target)
    return "rebuild"


def laid_out(found: Figures, name: str) -> Figures:
    """Figures of a layout, by the names of the builds below."""
    of = {PLAIN: PLAIN} | {base: f"{base}+{name}" for base in (INSTRUMENTED, SAMPLED)}
    text = {base: found.text[build] for base, build in of.items()}
    runs = [{base: run[build] for base, build in of.items()} for run in found.runs]
    return Figures(found.program, text, runs)


HEADINGS = (
    "program", "layout of pgo's build", "instructions", "taken branches", ".text", "hot pages",
    "user time",
)  # fmt: skip


def rows(found: Sequence[Figures], layouts: Sequence[str]) -> Iterator[list[str]]:
    """Of each layout, beside the same build without."""
    for each in found:
        for name in layouts:
            build = f"{SAMPLED}+{name}"
            costs = [each.cost(build, of, SAMPLED) for of in (*COUNTS, "hot_pages")]
            costs.insert(len(COUNTS), each.size(SAMPLED, build))
            told = [f"{cost:.3f}" for cost in costs]
            yield [each.program, name, *told, interval(each.time(SAMPLED, build))]
