"""Which kind of profile pays most: each is built, trained and counted, the best one kept.

Every kind is one `lbr2pgo pgo` of its own, which stops before it measures; what came out is counted
here, exactly, on the commands that judge. Kinds whose plain sibling is far behind are not tried.
The best ones are refined, by one thing each and by all at once that helped; what is best then is
refined further, until that helps nothing. Only the best are laid out anew. What changes no code is
not counted. Cycles of a simulated front end decide, or the size of the code, as the goal says; of
the best of each kind, where they cost about the same, native time does where it is certain. The
winner is counted on inputs that had no part in the choice.
What was counted is kept, for a search that was cut off.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import count as counter
from pathlib import Path
from threading import Lock
from time import monotonic

from lbr2pgo.pgo.built_code import code_digest
from lbr2pgo.pgo.code_size import text_size
from lbr2pgo.pgo.comparison import change
from lbr2pgo.pgo.fastest import fastest
from lbr2pgo.pgo.flags import BuildFlags, WantedFlags, config_file, layout_flags, profile_flags
from lbr2pgo.pgo.kinds import INSTRUMENTED, TRAINING_FLAGS, ProfileKind
from lbr2pgo.pgo.measure import (
    Measured,
    candidate_of,
    count,
    front_end_of,
    measure,
)
from lbr2pgo.pgo.results import AGAIN, PLAIN, Cost, Results
from lbr2pgo.pgo.search_options import SearchOptions
from lbr2pgo.pgo.source_trees import Trees
from lbr2pgo.pgo.steps import Say, SayOver, Title, put
from lbr2pgo.pgo.thread_locals import with_inlined_wrappers
from lbr2pgo.pgo.time_left import LAID_OUT, KindsLeft, Stage
from lbr2pgo.pgo.timing import BY_CHANCE, NOT_TIMED
from lbr2pgo.pgo.variants import VariantError, Variants
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.output import write_pieces

_HOPELESS = 1.05
"""A kind that costs so much more than the best one does not win by training flags."""
_NO_MATTER = 1.001
"""What costs so much more is no worse."""
_NEAR = 1.01
"""What costs so much more than the best may be better once it is refined."""
_TIMED_TO = 1.03
"""What costs so much more may take less time: within a program, ranks of cycles and of time differ
(docs/notes/software-lbr.md)."""
_TIMED = 6
"""How many builds are timed beside the plain one."""
_FEWEST_RUNS = 7
"""Rounds by which one of so many can be told: one that was as fast would be faster than the first
in each of them by chance in 5 · 0.5⁷ = 4 % of the searches."""
Chain = Sequence[ProfileKind]
"""Kinds that use builds of those before."""


class Search:
    """Tries kinds of profiles: each is a step, that `say` and `say_over` are told of."""

    def __init__(self, options: SearchOptions, say: Say, say_over: SayOver) -> None:
        self.options, self._say, self._say_over = options, say, say_over
        self._numbers = counter(1)
        self._place, work = options.loop.binary, options.loop.work.absolute()
        self.variants = Variants(options.loop, options.training)
        self.results = Results(work / "search.json", options.loop.goal)
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
        self._digests: dict[str, str] = {}
        """Of the code of kinds, by their names."""
        self._kinds: dict[str, ProfileKind] = {}
        """All that were to be tried, by their names, what is simplest first."""

    def run(self) -> ProfileKind | None:
        """Search; gives the best kind, None for the plain build, and puts it in the binary's place.

        Raises InputError where the plain build can't be had; any other that fails is left out.
        """
        self._build_plain()
        trees = Trees(Path.cwd(), self._copies, self.options.jobs)
        with ThreadPoolExecutor(self.options.jobs) as pool:
            for stage in self._stages():
                for done in [pool.submit(self._go_through, chain, trees) for chain in stage]:
                    done.result()
        best = self._fastest(self._confirmed())
        put(self._build_of(best), self._place)
        if best is not None and self.options.loop.compiler == "clang":
            write_pieces(self.config, [config_file(self._flags(best)).encode()])
        return best

    def _confirmed(self) -> ProfileKind | None:
        """The best kind that does the same on what was held back, counted there."""
        if not self._held_back:
            return self.best(self.options.judges)
        with self._step("what had no part in the choice"):
            self._count(None, self._held_back)
            best = self.best(self.options.judges)
            while best is not None and not self._confirms(best):
                best = self.best(self.options.judges)
            return best

    @property
    def _held_back(self) -> list[str]:
        return [text for text in self.options.held_back if text not in self.options.commands]

    def _confirms(self, kind: ProfileKind) -> bool:
        """Whether it does the same on what was held back; its yardstick is counted there, too."""
        for each in filter(None, (self.yardstick(kind), kind)):
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
        for kind in self._near(best):
            if kind.unrefined in met or len(found) == _TIMED:
                continue
            if self._like(kind, found) is None:
                if not self._confirms(kind):
                    continue
                found.append(kind)
            met.add(kind.unrefined)
        return found

    def _near(self, best: ProfileKind) -> Iterator[ProfileKind]:
        """What may take less time than the best, what costs least first."""
        most = self._ratio(best) * _TIMED_TO
        for name in self.results.ranked(self.options.judges, self._counted()):
            if name != PLAIN and self._ratio(self._kinds[name]) <= most:
                yield self._kinds[name]

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

    def best(self, commands: Sequence[str]) -> ProfileKind | None:
        """What costs least with some of the commands; None for the plain build.

        Of those that hardly differ, the one that asks least of the builds to come.
        """
        ranked = self.results.ranked(commands, self._counted())
        most = self.results.ratio(ranked[0], commands) * self._no_matter(commands)
        simplest = [PLAIN, *self._kinds]
        near = (name for name in ranked if self.results.ratio(name, commands) <= most)
        return self._kinds.get(min(near, key=simplest.index))

    def _no_matter(self, commands: Sequence[str]) -> float:
        """By what factor costs may differ and are the same."""
        return max(_NO_MATTER, 1 + BY_CHANCE * self.results.spread(commands))

    def loss_by_training(self) -> tuple[ProfileKind | None, float]:
        """What the training alone would choose, and what share more that costs in the tests."""
        trained, best = (
            self.best(each) for each in (self.options.training.commands, self.options.judges)
        )
        costs = [
            self.results.ratio(each.name if each else PLAIN, self.options.judges)
            for each in (trained, best)
        ]
        loss = costs[0] / costs[1] - 1
        return trained, loss if loss > self._no_matter(self.options.judges) - 1 else 0.0

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

    def _build_of(self, kind: ProfileKind | None) -> Path:
        return self.variants.plain if kind is None else self.variants.build_of(kind)

    def _is_counted(self, kind: ProfileKind) -> bool:
        """Whether this search has met it: an earlier one had other options."""
        return kind.name in self._kinds and kind.name in self.results.costs

    def _counted(self) -> list[str]:
        """What may be chosen."""
        sampled = (kind for kind in self._kinds.values() if kind.is_sampled)
        return [PLAIN, *(kind.name for kind in sampled if self._is_counted(kind))]

    def yardstick(self, kind: ProfileKind) -> ProfileKind | None:
        """The instrumented build that a kind is compared with, laid out alike; None for none."""
        alike = replace(INSTRUMENTED, layout=kind.layout), INSTRUMENTED
        return next(filter(self._is_counted, alike), None)

    def _stages(self) -> Iterator[list[Chain]]:
        """What to try at once; each stage depends on what those before have found."""
        yield self._begin("shipped", self._shipped())
        yield self._begin("trained", self._trained())
        bases = self._unrefined()
        while bases:
            yield self._begin("refined", self._refined(bases))
            yield self._begin("combined", self._combined(bases))
            bases = self._grown(bases)
        yield self._begin("laid out", self._laid_out())

    def _begin(self, stage: Stage, chains: Iterable[Chain]) -> list[Chain]:
        """What of it was not to be tried before."""
        new = [chain for chain in chains if any(kind.name not in self._kinds for kind in chain)]
        self._kinds.update((kind.name, kind) for chain in new for kind in chain)
        self._left.begin_stage(stage, sum(map(len, new)))
        return new

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

    def _shipped(self) -> Iterator[Chain]:
        yield self.options.kinds[:1]
        yield self.options.kinds[1:]
        if self.options.loop.instrumented:
            yield [INSTRUMENTED]

    def _trained(self) -> Iterator[Chain]:
        """With training flags, what is not hopeless without them, and what that needs."""
        cost = {
            each: self._ratio(each)
            for each in self.options.kinds
            if each.name in self.results.costs
        }
        near = [each for each in cost if cost[each] <= min(cost.values()) * _HOPELESS]
        for told in (self.options.kinds[:1], self.options.kinds[1:]):
            wanted = max((number for number, each in enumerate(told, 1) if each in near), default=0)
            yield [replace(each, training=TRAINING_FLAGS) for each in told[:wanted]]

    def _refined(self, bases: Sequence[ProfileKind]) -> Iterator[Chain]:
        """By whatever pays in some programs; GCC knows none of it."""
        for each in bases if self.options.loop.compiler == "clang" else ():
            yield from ([refined] for refined in each.refinements(self.options.loop.layout))

    def _combined(self, bases: Sequence[ProfileKind]) -> Iterator[Chain]:
        """With all flags at once that made a kind better one by one."""
        for each in bases:
            better = (kind for kind in self._compiled() if self._ratio(kind) < self._ratio(each))
            together = each.together(kind for kind in better if kind.extends(each))
            if together is not None:
                yield [together]

    def _grown(self, bases: Sequence[ProfileKind]) -> list[ProfileKind]:
        """The best of all if it is one of these refined: by more each time, so this ends."""
        best = self.best(self.options.judges)
        return [best] if best is not None and any(map(best.extends, bases)) else []

    def _unrefined(self) -> list[ProfileKind]:
        """The best kinds as they are made first: all that cost about the same, each code once."""
        found = list[ProfileKind]()
        for each in self._compiled():
            if not each.refined and self._like(each, found) is None:
                found.append(each)
        return [each for each in found if self._ratio(each) <= self._ratio(found[0]) * _NEAR]

    def _laid_out(self) -> Iterator[Chain]:
        """Anew, the best that the compiler made, each once: flags may have changed nothing."""
        layout, found = self.options.loop.layout, list[ProfileKind]()
        for kind in self._compiled():
            if len(found) < LAID_OUT and self._like(kind, found) is None:
                found.append(kind)
        if self._is_counted(INSTRUMENTED):
            found.append(INSTRUMENTED)
        for each in found if layout else ():
            yield [replace(each, layout=layout)]

    def _ratio(self, kind: ProfileKind) -> float:
        """What it costs the commands that judge, with the plain build's cost as 1."""
        return self.results.ratio(kind.name, self.options.judges)

    def _like(self, kind: ProfileKind, others: Iterable[ProfileKind]) -> ProfileKind | None:
        """The first of some others that has the same code."""
        own = self._digest(kind)
        return next((each for each in others if self._digest(each) == own), None)

    def _digest(self, kind: ProfileKind) -> str:
        if kind.name not in self._digests:
            self._digests[kind.name] = code_digest(self._build_of(kind))
        return self._digests[kind.name]

    def _compiled(self) -> list[ProfileKind]:
        """What the compiler made so far, the best first."""
        ranked = self.results.ranked(self.options.judges, self._counted())
        kinds = (self._kinds[name] for name in ranked if name != PLAIN)
        return [kind for kind in kinds if not kind.layout]

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
        counted = [each for each in list(self._kinds.values()) if self._is_counted(each)]
        same = self._like(kind, counted)
        if same is not None:
            self.results.add(kind.name, self.results.costs[same.name])
            return f"the same code as {same.name}"
        self._count(kind)
        more = self._ratio(kind) - 1
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
