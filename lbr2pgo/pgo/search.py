"""Which kind of profile pays most: each is built, trained and counted, the best one kept.

Every kind is one `lbr2pgo pgo` of its own, which stops before it measures; what came out is counted
here, exactly, on the commands that judge. `Stages` says what to try next, `Ranking` what is best.
What changes no code is not counted. Of the best of each kind, where they cost about the same,
native time decides where it is certain. The winner is counted on inputs that had no part in the
choice. What was counted is kept, for a search that was cut off.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import count as counter
from pathlib import Path
from threading import Lock
from time import monotonic

from lbr2pgo.pgo.built_code import code_digest
from lbr2pgo.pgo.code_size import text_size
from lbr2pgo.pgo.comparison import change
from lbr2pgo.pgo.fastest import fastest
from lbr2pgo.pgo.flags import BuildFlags, WantedFlags, config_file, layout_flags, profile_flags
from lbr2pgo.pgo.kinds import ProfileKind
from lbr2pgo.pgo.measure import Measured, candidate_of, count, front_end_of, measure
from lbr2pgo.pgo.ranking import Ranking
from lbr2pgo.pgo.results import AGAIN, PLAIN, Cost, Results
from lbr2pgo.pgo.search_options import SearchOptions
from lbr2pgo.pgo.source_trees import Trees
from lbr2pgo.pgo.stages import Chain, Stages
from lbr2pgo.pgo.steps import Say, SayOver, Title, put
from lbr2pgo.pgo.thread_locals import with_inlined_wrappers
from lbr2pgo.pgo.time_left import LAID_OUT, KindsLeft
from lbr2pgo.pgo.timing import NOT_TIMED
from lbr2pgo.pgo.variants import VariantError, Variants
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.output import write_pieces

_TIMED_TO = 1.03
"""What costs so much more may take less time: within a program, ranks of cycles and of time differ
(docs/notes/software-lbr.md)."""
_TIMED = 6
"""How many builds are timed beside the plain one."""
_FEWEST_RUNS = 7
"""Rounds by which one of so many can be told: one that was as fast would be faster than the first
in each of them by chance in 5 · 0.5⁷ = 4 % of the searches."""


class Search:
    """Tries kinds of profiles: each is a step, that `say` and `say_over` are told of."""

    def __init__(self, options: SearchOptions, say: Say, say_over: SayOver) -> None:
        self.options, self._say, self._say_over = options, say, say_over
        self._numbers = counter(1)
        self._place, work = options.loop.binary, options.loop.work.absolute()
        self.variants = Variants(options.loop, options.training)
        self.results = Results(work / "search.json", options.loop.goal)
        self.ranking = Ranking(self.results, options.judges, cache(self._digest))
        self._stages = Stages(options, self.ranking)
        self.left_out: dict[str, str] = {}
        """Names of kinds that were not counted, and why."""
        self.cures: dict[str, None] = {}
        """What would help these, each once."""
        self.measured: list[Measured] = []
        """The plain build, the one that costs least, and what costs about as much, with times."""
        self.is_by_time = False
        """Whether time chose among these."""
        self.config = work / "best.cfg"
        """Flags of the best build, as clang reads them from a file."""
        self._copies, self._counting = work / "trees", Lock()
        self._ends = None if options.budget is None else monotonic() + options.budget
        self._slowest = 0.0
        """Seconds that a kind took."""
        self._left = KindsLeft(options.loop, options.kinds, options.jobs, self._ends)

    def run(self) -> ProfileKind | None:
        """Search; gives the best kind, None for the plain build, and puts it in the binary's place.

        Raises InputError where the plain build can't be had; any other that fails is left out.
        """
        self._build_plain()
        trees = Trees(Path.cwd(), self._copies, self.options.jobs)
        with ThreadPoolExecutor(self.options.jobs) as pool:
            for stage, chains in self._stages:
                self._left.begin_stage(stage, sum(map(len, chains)))
                for done in [pool.submit(self._go_through, chain, trees) for chain in chains]:
                    done.result()
        best = self._fastest(self._confirmed())
        put(self._build_of(best), self._place)
        if best is not None and self.options.loop.compiler == "clang":
            write_pieces(self.config, [config_file(self._flags(best), os.environ).encode()])
        return best

    def _confirmed(self) -> ProfileKind | None:
        """The best kind that does the same on what was held back, counted there."""
        if not self._held_back:
            return self.ranking.best()
        with self._step("what had no part in the choice"):
            self._count(None, self._held_back)
            best = self.ranking.best()
            while best is not None and not self._confirms(best):
                best = self.ranking.best()
            return best

    @property
    def _held_back(self) -> list[str]:
        return [text for text in self.options.held_back if text not in self.options.commands]

    def _confirms(self, kind: ProfileKind) -> bool:
        """Whether it does the same on what was held back; its yardstick is counted there, too."""
        for each in filter(None, (self.ranking.yardstick(kind), kind)):
            self._count(each, self._held_back)
        return self.results.behaves(kind.name)

    def _fastest(self, best: ProfileKind | None) -> ProfileKind | None:
        """Of what costs about as much as the best, what surely takes less time; else the best."""
        if best is None or self.options.loop.runs == NOT_TIMED:
            return best
        rivals = self._rivals(best)
        self.measured = self._timed([None, *rivals])
        number = fastest(self.measured[1:], self.options.loop.goal)
        self.is_by_time = number > 0
        return rivals[number]

    def _rivals(self, best: ProfileKind) -> list[ProfileKind]:
        """The best, and the best of other kinds that do the same everywhere, each code once."""
        found, met = [best], {best.unrefined}
        most = self.ranking.ratio(best) * _TIMED_TO
        for kind in self.ranking.ranked():
            if self.ranking.ratio(kind) > most or len(found) == _TIMED:
                break
            if kind.unrefined in met:
                continue
            if self.ranking.like(kind, found) is None:
                if not self._confirms(kind):
                    continue
                found.append(kind)
            met.add(kind.unrefined)
        return found

    def _flags(self, kind: ProfileKind) -> BuildFlags:
        """Of the build that is shipped; llvm-bolt comes behind it."""
        work = self.variants.place(kind)
        is_bolted, is_propelled = (kind.layout == each for each in ("bolt", "propeller"))
        wanted = WantedFlags(
            self.options.loop.compiler, bolt=is_bolted, propeller=is_propelled,
            probes=kind.has_probes, use=kind.profile_flags,
            unrelaxed=Image.open(work.unprofiled).architecture.is_relaxed,
        )  # fmt: skip
        flags = profile_flags(work.profile, with_inlined_wrappers(wanted, work.unprofiled))
        if is_propelled:
            return layout_flags(flags, work.clusters, work.order)
        return flags

    def change(self, kind: ProfileKind) -> str:
        """What a kind needs beside the plain build, as it was measured, or else counted."""
        name = str(self._build_of(kind))
        found = next((each for each in self.measured if each.name == name), None)
        plain = self.measured[0] if found else self.results.measured(PLAIN, self.shown)
        return change(found or self.results.measured(kind.name, self.shown), plain)

    @property
    def shown(self) -> str:
        """The command with which builds are timed: it had no part in the choice, if one has not."""
        return (self.options.held_back or self.options.judges)[0]

    def _timed(self, kinds: Sequence[ProfileKind | None]) -> list[Measured]:
        """Builds with their times."""
        builds = dict.fromkeys(self._build_of(kind) for kind in kinds)
        source = self.options.training.input
        candidates = [
            candidate_of(self.shown, self._place, build, source=source) for build in builds
        ]
        front_end = front_end_of(self.options.loop.model, candidates[0])
        with self._step("Measure"):
            runs = replace(self.options.loop.runs, fewest=_FEWEST_RUNS)
            return measure(candidates, runs, front_end=front_end)

    def _digest(self, kind: ProfileKind) -> str:
        return code_digest(self._build_of(kind))

    def _build_of(self, kind: ProfileKind | None) -> Path:
        return self.variants.plain if kind is None else self.variants.build_of(kind)

    @contextmanager
    def _step(self, name: str) -> Iterator[list[str]]:
        """Takes what came of it."""
        title, began, found = Title(f"{next(self._numbers)}. {name}"), monotonic(), list[str]()
        self._say(title)
        yield found
        self._say_over(title, monotonic() - began, self._left.seconds, "".join(found))

    def _build_plain(self) -> None:
        began = monotonic()
        with self._step(PLAIN):
            self.variants.build_plain(Path.cwd(), self._ends)
            if self.results.begin(self._what_is_counted()):
                self._say("   goes on with what an earlier search has counted")
            self._count(None)
        self._slowest = monotonic() - began

    def _what_is_counted(self) -> str:
        """A hash of the plain build, of how it is built, what for, and run, and of the model."""
        loop = self.options.loop
        digest = hashlib.sha256(self.variants.plain.read_bytes())
        digest.update(
            "\0".join((loop.build, loop.goal.name, loop.model, *self.options.commands)).encode()
        )
        return digest.hexdigest()

    def _go_through(self, chain: Chain, trees: Trees) -> None:
        for kind in chain:
            # The plain build, made anew, has swept away what its neighbour by lines came to.
            if kind.name in self.results.costs and self._build_of(kind).exists():
                self._left.is_over(kind)
                continue
            with trees.one() as tree, self._step(kind.name) as found:
                began = monotonic()
                found.append(self._tried(kind, tree))
                took = monotonic() - began
                self._left.is_over(kind, took)
                self._slowest = max(self._slowest, took)

    def _tried(self, kind: ProfileKind, tree: Path) -> str:
        """Build and judge a kind; says what came of it."""
        try:
            self.variants.build(kind, tree, self._deadline(kind))
            return self._judge(kind)
        except InputError as error:
            self.left_out[kind.name] = error.headline
            if isinstance(error, VariantError) and error.advice:
                self.cures[error.advice] = None
            return f"left out: {error.headline}"

    def _deadline(self, kind: ProfileKind) -> float | None:
        """When its build is stopped: a layout that was asked for has time of its own."""
        if self._ends is None or self.options.budget is None:
            return None
        if kind.layout or not self.options.loop.layout:
            return self._ends
        return self._ends - min(LAID_OUT * self._slowest, self.options.budget / 2)

    def _judge(self, kind: ProfileKind) -> str:
        """Count a kind, unless it has the code of another one; says what it costs."""
        counted = filter(self.ranking.is_counted, list(self.ranking.kinds.values()))
        same = self.ranking.like(kind, counted)
        if same is not None:
            self.results.add(kind.name, self.results.costs[same.name])
            return f"the same code as {same.name}"
        self._count(kind)
        more = self.ranking.ratio(kind) - 1
        return f"costs {abs(more):.1%} {'more' if more > 0 else 'less'}"

    def _count(self, kind: ProfileKind | None, commands: Sequence[str] | None = None) -> None:
        """One command after the other, as programs may run in the binary's place; plain ones twice.

        What was counted is left out.
        """
        build = self._build_of(kind)
        wanted = self.options.commands if commands is None else commands
        for name in (PLAIN, AGAIN) if kind is None else (kind.name,):
            with self._counting:
                known = self.results.costs.get(name, {})
                costs = {text: self._cost(text, build) for text in wanted if text not in known}
                self.results.add(name, costs)

    def _cost(self, text: str, build: Path) -> Cost:
        candidate = candidate_of(text, self._place, build, source=self.options.training.input)
        run = count(candidate, front_end_of(self.options.loop.model, candidate))
        cycles = 0.0 if run.front_end is None else run.front_end.cycles
        totals = run.totals
        return Cost(
            totals.instructions, totals.taken, cycles, text_size(build), run.exit_code, run.output
        )
