"""The whole loop: build, train, convert, rebuild, optimise after the link, measure."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic

from lbr2pgo.pgo import COUNTERS, NO_TRAINING_BUILD, PROFILES, STEPS
from lbr2pgo.pgo.builder import Builder, Fault
from lbr2pgo.pgo.built_code import same_code, winning_levels
from lbr2pgo.pgo.finished import final_build, finished_builds
from lbr2pgo.pgo.flags import UNRELAXED, BuildFlags
from lbr2pgo.pgo.loop_flags import LoopFlags
from lbr2pgo.pgo.loop_options import LoopOptions
from lbr2pgo.pgo.measure import Measured, candidate_of, front_end_of, measure
from lbr2pgo.pgo.post_link import bolt, profiled
from lbr2pgo.pgo.same_work import check_same_work
from lbr2pgo.pgo.steps import (
    CommandLine,
    Detail,
    NoProbesError,
    Say,
    SayOver,
    Title,
    put,
)
from lbr2pgo.pgo.stored import Usability, judge, judge_layout, refuse_another_program
from lbr2pgo.pgo.time_left import TimeLeft
from lbr2pgo.pgo.trainer import Trainer
from lbr2pgo.pgo.training import check_ended
from lbr2pgo.pgo.verdict import Built
from lbr2pgo.pgo.wants import what_it_read
from lbr2pgo.pgo.workplace import Workplace, need
from lbr2pgo.profiles.bolt.fdata.format import FdataOutput
from lbr2pgo.profiles.bolt.tool import needed_bolt
from lbr2pgo.profiles.linker.startup_order import StartupOrderOutput
from lbr2pgo.profiles.propeller.format import PropellerOutput
from lbr2pgo.profiles.propeller.order_format import PropellerOrderOutput
from lbr2pgo.program.block_map import has_block_map
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.pseudo_probes import has_probes
from lbr2pgo.recorders.options import Watch
from lbr2pgo.support.errors import InputError

_FLAGS = "flags"
"""What wins over others, where it is not known more closely."""


class Loop:
    """Goes through the steps of one loop; `say` takes what each is and its command.

    `say_over` takes each step that is over; `watch` is entered while a training command runs. What
    a step needs of the ones before lies in the work directory.
    """

    def __init__(
        self,
        options: LoopOptions,
        say: Say,
        say_over: SayOver | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.options, self.binary, self._told = options, options.binary, say
        self.builds: list[Built] = []
        """Those that were measured, the plain one first."""
        suffix = COUNTERS if options.instrumented else PROFILES[options.compiler]
        self._work = Workplace(options.work, options.binary, suffix)
        self._say_over, self._watch = say_over, watch
        self._trainer = self._trainer_by(options)
        self._builder = Builder(options, self._work, self._say)
        self._step, self._title, self._began = 0, "", monotonic()
        self._left = TimeLeft(options)

    def _say(self, text: str) -> None:
        """Titles and commands are kept, too, as a script."""
        self._told(text)
        if isinstance(text, Title | CommandLine):
            self.commands.parent.mkdir(parents=True, exist_ok=True)
            with self.commands.open("a", encoding="utf-8") as script:
                script.write(f"# {text}\n" if isinstance(text, Title) else f"{text.strip()}\n")

    @property
    def commands(self) -> Path:
        """What steps have run."""
        return self._work.commands

    @property
    def log(self) -> Path:
        """What builds have printed."""
        return self._work.log

    def run(self) -> list[Measured]:
        """Optimise the binary in its place; gives what each build costs, the plain one first.

        The list is empty where there is no command to be measured, or it is not asked for. With
        `bolt`, the last one lies beside the binary, its name ends in `.bolt`. Raises as the steps
        do; what they made until then stays in the work directory.
        """
        if self.options.bolt:
            needed_bolt()  # or nothing is built in vain
        self._go_on()
        chosen = STEPS[STEPS.index(self.options.first) : STEPS.index(self.options.last) + 1]
        steps: dict[str, Callable[[], None]] = {
            "build": self._build_plain, "training-build": self._build_for_training,
            "train": self._train_for_compiler, "convert": self._convert, "rebuild": self._rebuild,
            "again": self._rebuild_again, "propeller": self._lay_out_by_compiler,
            "startup": self._order_by_start, "bolt": self._lay_out,
        }  # fmt: skip
        todo = [steps[name] for name in chosen if name in steps]
        is_measured = STEPS[-1] in chosen
        if is_measured and self._flags.has_marks:
            todo.insert(1 if STEPS[0] in chosen else 0, self._build_base)
        for step in todo:
            step()
        measured = self._measure() if is_measured else []
        self._finish_step()
        return measured

    def _next(self, title: str) -> None:
        self._finish_step()
        self._step, self._title = self._step + 1, title
        self._began = monotonic()
        self._say(Title(self._numbered))

    @property
    def _numbered(self) -> str:
        """The step at hand."""
        return f"{self._step}. {self._title}"

    def _finish_step(self) -> None:
        if self._step and self._say_over is not None:
            took = monotonic() - self._began
            self._say_over(self._numbered, took, self._left.after(self._title, took))

    def _build_plain(self) -> None:
        self._work.begin()
        flags = self._flags
        if flags.trains_apart:
            self._next("Build without a profile")
            self._build_checked(flags.base)
            self._builder.keep(self._work.plain)
            return
        is_recorded = not flags.wanted.only_recorded
        self._next("Build what is to be recorded" if is_recorded else "Build without a profile")
        self._build_to_be_recorded()

    def _build_to_be_recorded(self) -> None:
        """Without flags of its own."""
        self._build_if_can_be(lambda: self._build_checked(self._flags.plain))
        self._builder.keep(self._work.marked if self._flags.has_marks else self._work.plain)

    def _build_if_can_be(self, build: Callable[[], object]) -> None:
        """With probes, if clang can place any, or by lines, which may do as well."""
        try:
            build()
        except NoProbesError as error:
            if not (self.options.unrelaxed or self.options.again):
                self._say(f"   Note: {error.what}: {' '.join(UNRELAXED)} for what is recorded.")
                self.options = replace(self.options, unrelaxed=True)
            elif self.options.or_lines:
                self._say(f"   Note: {error.what}: goes on by lines, as with --lines.")
                self._go_by_lines()
            else:
                raise
            self._build_if_can_be(build)

    def _build_checked(self, flags: BuildFlags, fault: Fault = lambda: None) -> str | None:
        """With all that these flags ask for, or InputError; gives what else is at fault."""
        found = self._builder.build(flags, lambda: self._lack_of_marks(flags) or fault())
        lacking = self._lacking(flags)
        if lacking is not None:
            raise InputError(
                f"has no {lacking}: the build did not take the flags that it was given",
                where=str(self.binary),
                cure="It must compile anew (`make clean all`, `cmake --fresh`), with the CFLAGS of "
                "the environment, a compiler found by PATH, or `{flags}` in --build.",
            )
        return found

    def _lack_of_marks(self, flags: BuildFlags) -> str | None:
        lacking = self._lacking(flags)
        return lacking and f"It has no {lacking}: the build sets its own flags, or strips"

    def _go_on(self) -> None:
        """As the loop went that made what is recorded; one before that has no say in it."""
        if self.options.first in STEPS[: STEPS.index("train")]:
            return
        recorded = Image.open(self._work.recorded)
        if not has_probes(recorded):
            self._go_by_lines()
        self.options = replace(self.options, unrelaxed=recorded.architecture.is_relaxed)

    def _go_by_lines(self) -> None:
        """Where the program has no probes, and may do without."""
        if self.options.or_lines:
            self.options = self.options.by_lines
            self._trainer = self._trainer_by(self.options)

    def _trainer_by(self, options: LoopOptions) -> Trainer:
        return Trainer(options, self._work, self._next, self._say, self._watch)

    def _build_base(self) -> None:
        """What is measured against, where the build without a profile has more in its code."""
        kept = self._work.newest
        if not self._work.plain.exists():
            title = "Build plainly, to compare with"
            if self._step:
                self._say(Detail(f"{title}:"))
            else:
                self._next(title)
            self._builder.build(self._flags.base)
            self._builder.keep(self._work.plain)
            put(kept, self.binary)

    def _build_for_training(self) -> None:
        """Where the recorded build has flags of its own; where it can't be had, say why."""
        if not self._flags.wanted.only_recorded or self.options.profile is not None:
            return
        self._next("Build what is to be recorded")
        way = self._builder.way
        try:
            self._build_if_can_be(self._build_once_more)
            self._builder.keep(self._work.training)
            works = self._work.unprofiled, self._work.training
            check_same_work(self._trainer.training, self.binary, *works)
        except NoProbesError:
            raise
        except InputError as error:
            if self.options.instrumented:  # without it there is nothing to go on with
                raise
            self._work.training.unlink(missing_ok=True)
            self._builder.go_back_to(way)
            self._say(f"{NO_TRAINING_BUILD}{error.headline}")
            if self._flags.has_marks and not self._work.marked.exists():
                self._build_to_be_recorded()

    def _build_once_more(self) -> None:
        """Raises InputError if it fails, or changes no code."""
        fault = self._build_checked(self._flags.training, self._loss)
        if same_code(self.binary, self._work.unprofiled):
            lost = self._lost()
            why = "" if lost in (None, _FLAGS) else f", which loses to the build's own {lost}"
            raise InputError(f"it is the same with {self._recorded_flags}{why}")
        if fault is not None:
            self._say(f"   Warning: {fault}: write {{flags}} behind that, in --build.")

    @property
    def _recorded_flags(self) -> str:
        return " ".join(self._flags.wanted.only_recorded)

    def _loss(self) -> str | None:
        lost = self._lost()
        return lost and f"{self._recorded_flags} loses to the build's own {lost}"

    def _lost(self) -> str | None:
        """What the flags of the recorded build lost to, None if they changed what they were for."""
        won = winning_levels(self.binary, self._flags.wanted.only_recorded)
        is_same = same_code(self.binary, self._work.unprofiled)
        return " ".join(won) or (_FLAGS if is_same else None)

    @property
    def _flags(self) -> LoopFlags:
        return LoopFlags(self.options, self._work)

    @property
    def _is_gcc(self) -> bool:
        return self.options.compiler == "gcc"

    def _lacking(self, flags: BuildFlags) -> str | None:
        """What a build was to have by its flags, and has not got."""
        image = Image.open(self.binary)
        if not DebugInfo.open(image).present:
            return "debug information"
        if flags.asks_for_probes and not has_probes(image):
            return "pseudo probes"
        if flags.asks_for_block_map and not has_block_map(image):
            return "block map"
        return None

    def _train_for_compiler(self) -> None:
        if self.options.profile is None:
            self._trainer.record_for_compiler()

    def _convert(self) -> None:
        if self.options.profile is None:
            self._trainer.convert_for_compiler()

    def _rebuild(self) -> None:
        before = self._work.unprofiled
        if self.options.profile is not None and not self._is_usable(before):
            return
        need(self._flags.profile_file, "convert")
        self._build_with_profile()

    def _rebuild_again(self) -> None:
        """With a profile of the build that the first one went into."""
        if self.options.again:
            need(self._work.rebuilt, "rebuild")
            self._trainer.take_second_generation()
            self._build_with_profile()

    def _build_with_profile(self) -> None:
        self._next("Build with the profile")
        for made in (self._work.propelled, self._work.ordered):  # of an earlier one
            made.unlink(missing_ok=True)
        work = self._work
        self._builder.build_anew(self._flags.profile, work.unprofiled, work.rebuilt)

    def _is_usable(self, before: Path) -> bool:
        profile = self._flags.profile_file
        self._next(f"Look at the profile {profile}")
        verdict = judge(profile, before, for_gcc=self._is_gcc)
        self._tell(verdict)
        return verdict.usable

    def _tell(self, verdict: Usability) -> None:
        if verdict.said:
            self._say(f"   {'Warning' if verdict.is_warning else 'Note'}: {verdict.said}.")

    def _lay_out_by_compiler(self) -> None:
        if not self.options.propeller:
            return
        work, recording = self._work, self._work.propeller_recording
        work.propelled.unlink(missing_ok=True)  # of an earlier loop
        if not self._records_well(recording):
            return
        self._next("Convert for Propeller")
        self._trainer.make(
            recording,
            PropellerOutput(work.clusters, clone_paths=self.options.clone_paths),
            PropellerOrderOutput(work.order),
        )
        self._next("Build with the layout")
        self._builder.build_anew(self._flags.layout, work.newest, work.propelled)
        self._tell(judge_layout(work.newest, work.propelled))

    def _records_well(self, recording: Path) -> bool:
        """Record the newest build; tells whether that is good enough to lay it out by."""
        verdict = self._trainer.record_for_layout(recording)
        self._tell(verdict)
        return verdict.usable

    def _order_by_start(self) -> None:
        if not self.options.startup:
            return
        work, trainer = self._work, self._trainer
        trainer.record_start(work.newest, work.start_recording)
        self._next("Convert for the linker")
        trainer.make_of_start(work.start_recording, StartupOrderOutput(work.start_order))
        self._next("Build in the order of the start")
        self._builder.build_anew(self._flags.order, work.newest, work.ordered)
        trainer.record_start(work.ordered, work.ordered_recording)

    def _lay_out(self) -> None:
        if not self.options.bolt:
            return
        tool, stored = needed_bolt(), self.options.bolt_profile
        if stored is not None:
            refuse_another_program(stored, self.binary)
        else:
            recording = self._work.bolt_recording
            self._work.laid_out.unlink(missing_ok=True)  # of an earlier loop
            if not self._records_well(recording):
                return
            self._next("Convert for BOLT")
            self._trainer.make(recording, FdataOutput(self._work.fdata))
        self._next("Optimise after the link")
        self._say(CommandLine(shlex.join(self._flags.bolt_command(tool))))
        profile = self._flags.layout_profile
        said = bolt(tool, self.binary, profile, self._work.laid_out, infers=stored is not None)
        for line in profiled(said) if stored is not None else ():
            self._say(Detail(line))

    def _measure(self) -> list[Measured]:
        put(final_build(self._flags), self.binary)
        self.builds = finished_builds(self._flags, self._builder.way, self._trainer)
        self._next("Measure")
        text, train = self.options.measured, self.options.train
        if text is None:
            self._say("   Not measured: there is no command (see --measure).")
            return []
        self._say(CommandLine(text))
        source = train.input if train else None
        candidates = [
            candidate_of(text, self.binary, each.path, self._content(each), source)
            for each in self.builds
        ]
        front_end = front_end_of(self.options.model, candidates[0])
        measured = measure(candidates, self.options.runs, front_end=front_end)
        if train is not None:
            code = measured[0].counted.exit_code
            check_ended(code, "the measured run", text, train, what_it_read(source))
        return measured

    def _content(self, build: Built) -> Path:
        """Where a build is kept, while another one is in the binary's place."""
        return final_build(self._flags) if build.path == self.binary else build.path
