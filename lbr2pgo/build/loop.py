"""The whole loop: build, train, convert, rebuild, optimise after the link, measure."""

from __future__ import annotations

import filecmp
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Literal

from lbr2pgo.analyses.sample_quality import density
from lbr2pgo.build import STEPS
from lbr2pgo.build.cargo import ByRustflags
from lbr2pgo.build.flags import (
    BuildFlags,
    Wanted,
    plain_flags,
    profile_flags,
    training_flags,
)
from lbr2pgo.build.measure import Candidate, Measured, measure
from lbr2pgo.build.options import LoopOptions
from lbr2pgo.build.post_link import bolt, bolt_command
from lbr2pgo.build.reach import ByName, ByVariables, way_for
from lbr2pgo.build.same_work import check_same_work
from lbr2pgo.build.steps import Say, command_words, put, run_build, with_binary
from lbr2pgo.build.stored import judge
from lbr2pgo.build.training import (
    Training,
    exact_beside,
    make_profile,
    record_all,
    recordings,
    shorter_period,
    walks_frame_pointers,
)
from lbr2pgo.build.verdict import Built
from lbr2pgo.build.workplace import Workplace, need
from lbr2pgo.profiles.bolt.tool import find_bolt, needed_bolt
from lbr2pgo.profiles.formats import read_written
from lbr2pgo.profiles.formats.base import Output
from lbr2pgo.profiles.formats.fdata import FdataOutput
from lbr2pgo.profiles.formats.llvm import LlvmOutput
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.probes import has_probes
from lbr2pgo.record.options import Watch
from lbr2pgo.support.errors import InputError


class Loop:
    """Goes through the steps of one loop; `say` takes what each is and its command.

    `say_time` takes how many seconds the step took that is over; `watch` is entered while a
    training command runs. What a step needs of the ones before lies in the work directory.
    """

    def __init__(
        self,
        options: LoopOptions,
        say: Say,
        say_time: Callable[[float], None] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.options, self.binary, self._say = options, options.binary, say
        self.builds: list[Built] = []
        """Those that were measured, the plain one first."""
        self._work = Workplace(options.work, options.binary)
        self._training = options.train
        self._say_time, self._watch = say_time, watch
        self._way = ByRustflags() if options.cargo else way_for(options.build)
        if options.first != STEPS[0] and self._work.compilers.exists():  # had to go this way
            self._way = ByName(self._work.compilers)
        self._step, self._began = 0, monotonic()
        self._period: int | None = None

    def run(self) -> list[Measured]:
        """Optimise the binary in its place; gives what each build costs, the plain one first.

        The list is empty where there is no command to be measured, or it is not asked for. With
        `bolt`, the last one lies beside the binary, its name ends in `.bolt`. Raises as the steps
        do; what they made until then stays in the work directory.
        """
        bolt_tool = self._bolt_tool()
        measured: list[Measured] = []
        for name in STEPS[STEPS.index(self.options.first) : STEPS.index(self.options.last) + 1]:
            match name:
                case "build":
                    self._build_plain()
                    self._build_for_training()
                case "train" if self.options.profile is None:
                    self._train(self._trains, self._work.recording)
                case "convert":
                    self._convert()
                case "rebuild":
                    self._rebuild()
                case "bolt" if bolt_tool is not None:
                    self._lay_out(bolt_tool)
                case "measure":
                    measured = self._measure()
        self._finish_step()
        return measured

    def _next(self, title: str) -> None:
        self._finish_step()
        self._step += 1
        self._began = monotonic()
        self._say(f"{self._step}. {title}")

    def _finish_step(self) -> None:
        if self._step and self._say_time is not None:
            self._say_time(monotonic() - self._began)

    def _bolt_tool(self) -> str | None:
        """Before anything is built in vain."""
        return needed_bolt() if self.options.bolt else None

    def _build_plain(self) -> None:
        is_recorded = not self._wanted.only_recorded
        self._next("Build what is to be recorded" if is_recorded else "Build without a profile")
        self._work.begin()
        self._build(self._plain_flags)
        lacking = self._lacking()
        if lacking is not None and type(self._way) is ByVariables:
            self._say(
                f"   It has no {lacking}: the build sets its own flags, or strips. Builds again, "
                "with compilers that add the flags and a strip that does nothing, in "
                f"{self._work.compilers}."
            )
            self._way = ByName(self._work.compilers)
            self._build(self._plain_flags)
            lacking = self._lacking()
        if lacking is not None:
            raise InputError(
                f"has no {lacking}: the build did not take the flags that it was given",
                where=str(self.binary),
                cure="It must compile anew (`make clean all`, `cmake --fresh`), with the CFLAGS of "
                "the environment, a compiler found by PATH, or `{flags}` in --build.",
            )
        put(self.binary, self._work.plain)

    def _build_for_training(self) -> None:
        """Where the recorded build has flags of its own; where it can't be had, say why."""
        if not self._wanted.only_recorded or self.options.profile is not None:
            return
        self._next("Build what is to be recorded")
        try:
            self._build_once_more()
            put(self.binary, self._work.training)
            works = self._work.plain, self._work.training
            check_same_work(self._trains.commands, self.binary, *works)
        except InputError as error:
            self._work.training.unlink(missing_ok=True)
            self._say(f"   Note: {error.headline}. Records the build without a profile instead.")

    def _build_once_more(self) -> None:
        """Raises InputError if it fails, or changes nothing."""
        flags, plain = training_flags(self._wanted), self._work.plain
        self._build(flags)
        if type(self._way) is ByVariables and filecmp.cmp(self.binary, plain, shallow=False):
            self._say(
                f"   The build's own flags win: builds again, with compilers that add them in "
                f"{self._work.compilers}."
            )
            self._build(flags, ByName(self._work.compilers))
        if filecmp.cmp(self.binary, plain, shallow=False):
            raise InputError(f"it is the same with {' '.join(self._wanted.only_recorded)}")

    def _build(self, flags: BuildFlags, way: ByVariables | None = None) -> None:
        run_build(self.options.build, flags, self.binary, self._say, way or self._way)

    @property
    def _wanted(self) -> Wanted:
        options = self.options
        walks_frames = options.train is not None and walks_frame_pointers(options.train)
        return Wanted(options.bolt, options.probes, walks_frames, options.training_flags)

    @property
    def _plain_flags(self) -> BuildFlags:
        return plain_flags(self._wanted)

    def _lacking(self) -> str | None:
        """What the profile will be told by, and the build has not got."""
        image = Image.open(self.binary)
        if not DebugInfo.open(image).present:
            return "debug information"
        if self.options.probes and not has_probes(image):
            return "pseudo probes"
        return None

    @property
    def _trains(self) -> Training:
        assert self._training is not None  # LoopOptions checks it
        return self._training

    def _train(self, training: Training, recording: Path) -> None:
        self._next("Train")
        if recording == self._work.recording:
            put(self._work.recorded, self.binary)
        self._period = record_all(training, recording, self._say, self._watch)

    @property
    def _profile(self) -> Path:
        return self.options.profile or self._work.profile

    def _make(self, recording: Path, output: Output) -> None:
        """Make a profile of recordings of the program in its place."""
        inputs = recordings(self._trains, recording)
        if self._trains.exact:
            inputs = [exact_beside(each) for each in inputs]
        found = [need(each, "train") for each in inputs]
        make_profile(found, self.binary, self._say, output)

    def _convert(self) -> None:
        if self.options.profile is not None:
            return
        put(self._work.recorded, self.binary)
        self._convert_once()
        is_open = self._trains.period is None and not self._trains.exact
        if self._period is not None and is_open:
            self._make_denser(self._period)

    def _convert_once(self) -> None:
        self._next("Convert for the compiler")
        contexts: Literal["nested", "auto"] = "nested" if self._trains.call_graph else "auto"
        self._make(self._work.recording, LlvmOutput(self._profile, contexts=contexts))

    def _make_denser(self, period: int) -> None:
        """Record once more, with a shorter period, if the profile is thin."""
        samples = read_written(self._profile)
        assert isinstance(samples, SampleProfile)
        shorter = shorter_period(period, density(samples))
        if shorter is not None:
            self._say(f"   Too few samples: trains again, with a period of {shorter:,}.")
            self._training = replace(self._trains, period=shorter)
            self._train(self._training, self._work.recording)
            self._convert_once()

    def _rebuild(self) -> None:
        plain = need(self._work.plain, "build")
        if self.options.profile is not None and not self._is_usable(self.options.profile):
            return
        self._next("Build with the profile")
        self._build(profile_flags(need(self._profile, "convert"), self._wanted))
        if filecmp.cmp(self.binary, plain, shallow=False):
            raise InputError(
                "is as it was before: the build did not compile it anew, or not with its flags",
                where=str(self.binary),
                cure="Let --build start from scratch and take CFLAGS from the environment, as "
                "`make clean all` and `cmake --fresh …` do.",
            )
        put(self.binary, self._work.rebuilt)

    def _is_usable(self, profile: Path) -> bool:
        self._next(f"Look at the profile {profile}")
        verdict = judge(profile, self._work.plain)
        if verdict.said:
            self._say(f"   {'Warning' if verdict.is_warning else 'Note'}: {verdict.said}.")
        return verdict.usable

    def _lay_out(self, tool: str) -> None:
        """BOLT needs a recording of the very binary that it rewrites."""
        put(self._work.newest, self.binary)
        recording, fdata = self._work.bolt_recording, self._work.fdata
        self._train(replace(self._trains, call_graph=False), recording)
        self._next("Convert for BOLT")
        self._make(recording, FdataOutput(fdata))
        self._next("Optimise after the link")
        self._say(f"   {' '.join(self._bolt_command(tool))}")
        bolt(tool, self.binary, fdata, self._work.laid_out)

    def _bolt_command(self, tool: str) -> list[str]:
        return bolt_command(tool, self.binary, self._work.fdata, self._work.laid_out)

    def _found(self) -> list[Built]:
        """The builds that there are."""
        plain = need(self._work.plain, "build")
        builds = [Built(plain, self._way.advice(self._plain_flags))]
        if self._work.rebuilt.exists():
            flags = profile_flags(self._profile, self._wanted)
            builds.append(Built(self.binary, self._way.advice(flags), self._profile))
        tool = find_bolt() if self.options.bolt else None
        if tool is not None and self._work.laid_out.exists():
            layout = tuple(self._bolt_command(tool))
            builds.append(replace(builds[-1], path=self._work.laid_out, layout=layout))
        return builds

    def _measure(self) -> list[Measured]:
        put(self._work.newest, self.binary)
        self.builds = self._found()
        self._next("Measure")
        trained = self.options.train.whole_command if self.options.train else None
        text = self.options.measure or trained
        if text is None:
            self._say("   Not measured: there is no command (see --measure).")
            return []
        self._say(f"   {text}")
        return measure(
            [self._candidate(text, each.path) for each in self.builds], self.options.runs
        )

    def _candidate(self, text: str, build: Path) -> Candidate:
        """A command that names the binary gets the build's name; another finds it in its place."""
        named = with_binary(text, self.binary, build)
        if named is not None:
            return Candidate(str(build), command_words(named))
        content = self._work.newest if build == self.binary else build
        return Candidate(str(build), command_words(text), (content, self.binary))
