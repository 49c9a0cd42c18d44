"""Training in a loop: what is recorded of which build, and the profiles made of it.

Or clang's instrumented PGO, which profiles of samples are compared with: the program is built with
`-fprofile-generate` and writes its counts into a directory when it ends; llvm-profdata adds them up
(clang/docs/UsersManual.rst, "Profiling with Instrumentation").
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lbr2pgo.analyses.touched_pages import ran_pages
from lbr2pgo.fleet.merge import MergeOptions, merge_files
from lbr2pgo.pgo.flags import afdo_version
from lbr2pgo.pgo.loop_options import LoopOptions
from lbr2pgo.pgo.standard_input import reading
from lbr2pgo.pgo.steps import CommandLine, Say, command_words, place
from lbr2pgo.pgo.stored import Usability, judge_recordings
from lbr2pgo.pgo.training import (
    Training,
    check_ended,
    exact_beside,
    make_profiles,
    record_all,
    recordings,
    walks_frame_pointers,
)
from lbr2pgo.pgo.wants import what_it_read
from lbr2pgo.pgo.workplace import Workplace, need
from lbr2pgo.profiles.afdo.format import AfdoOutput
from lbr2pgo.profiles.base import Output
from lbr2pgo.profiles.llvm.format import LlvmOutput
from lbr2pgo.profiles.llvm_tools import last_lines, llvm_tools
from lbr2pgo.recorders.options import Watch
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.support.errors import InputError, MissingToolError, OutputError

Recorded = Sequence[tuple[Path, Path]]
"""Builds and their recordings."""


class Trainer:
    """Records builds in the binary's place; `begin` takes the name of each step, `say` the rest.

    `watch` is entered while a training command runs.
    """

    def __init__(
        self, options: LoopOptions, work: Workplace, begin: Say, say: Say, watch: Watch | None
    ) -> None:
        self._options, self._work = options, work
        self._begin, self._say, self._watch = begin, say, watch

    @property
    def training(self) -> Training:
        """How to train."""
        assert self._options.train is not None  # LoopOptions checks it
        return self._options.train

    def record_for_compiler(self) -> None:
        """Record the build that the compiler's profile is told by, and with `both` the plain one.

        What is recorded first is in the binary's place afterwards.
        """
        if self._options.instrumented:
            self._begin("Train")
            self._place(need(self._work.training, "training-build"))
            count_in_program(self.training, self._work.counts, self._say)
            return
        period = None
        for build, recording in reversed(self._recorded()):
            training = self._training_of(build)
            if period is not None:  # profiles that are added up have one
                training = replace(training, period=period)
            period = self._record(build, training, recording)

    def _training_of(self, build: Path) -> Training:
        """Call chains are by frame pointers on hardware, which a build to be shipped has not."""
        if build != self._work.unprofiled or not walks_frame_pointers(self.training):
            return self.training
        self._say("   Note: records no call chains, for which this build lacks frame pointers")
        return replace(self.training, call_graph=False)

    def convert_for_compiler(self) -> None:
        """Make the compiler's profile."""
        if self._options.instrumented:
            self._begin("Convert for the compiler")
            merge_counts(self._work.counts, self._work.profile, self._say)
            return
        self._convert(self._recorded())

    def record_newest(self, recording: Path) -> None:
        """Layouts want a recording of the very code that they change."""
        self._record(self._work.newest, replace(self.training, call_graph=False), recording)

    def record_for_layout(self, recording: Path) -> Usability:
        """Record the newest build, and look at what came of it."""
        self.record_newest(recording)
        return judge_recordings(self._inputs(recording), self._options.binary)

    def record_start(self, build: Path, recording: Path) -> None:
        """Record the start of a build."""
        self._record(build, self._start_training, recording)

    @property
    def _start_training(self) -> Training:
        return replace(self.training, call_graph=False, exact=False, period=None, startup=True)

    def make_of_start(self, recording: Path, *outputs: Output) -> None:
        """Make orders of the start of the program in its place."""
        self._make(recordings(self._start_training, recording), outputs)

    def pages_of_start(self, recording: Path, build: Path) -> int:
        """How many pages of its code a build has touched there."""
        recorded = tuple(recordings(self._start_training, recording))
        return len(ran_pages(read_and_replay(Inputs(recorded, build)).flow))

    def take_second_generation(self) -> None:
        """Record the build that the profile went into, for the profile to be made of that."""
        recording = self._work.second_recording
        self.record_newest(recording)
        self._convert([(self._work.newest, recording)])

    def make(self, recording: Path, *outputs: Output) -> None:
        """Make profiles of recordings of the program in its place."""
        self._make(self._inputs(recording), outputs)

    def _inputs(self, recording: Path) -> list[Path]:
        """What the profile is made of, by where the first command's recording is."""
        inputs = recordings(self.training, recording)
        return [exact_beside(each) for each in inputs] if self.training.exact else inputs

    def _make(self, inputs: Sequence[Path], outputs: Sequence[Output]) -> None:
        found = [need(each, "train") for each in inputs]
        options = self._options
        make_profiles(found, options.binary, self._say, outputs, provenance=options.provenance)

    def _recorded(self) -> Recorded:
        work = self._work
        first = (work.recorded, work.recording)
        if not self._options.both or work.recorded == work.unprofiled:
            return [first]
        return [first, (work.unprofiled, work.plain_recording)]

    def _record(self, build: Path, training: Training, recording: Path) -> int | None:
        self._begin("Train")
        self._place(build)
        return record_all(training, recording, self._say, self._watch)

    def _convert(self, recorded: Recorded) -> None:
        profile, parts = self._work.profile, []
        for build, recording in reversed(recorded):
            self._begin("Convert for the compiler")
            self._place(build)
            parts.append(recording.with_suffix(profile.suffix) if len(recorded) > 1 else profile)
            self.make(recording, self._output(parts[-1]))
        if len(parts) > 1:
            words = ("lbr2pgo", "merge", "-o", *map(str, (profile, *parts)))
            self._say(CommandLine(shlex.join(words)))
            merge_files(MergeOptions(tuple(parts), profile))

    def _place(self, build: Path) -> None:
        place(build, self._options.binary, self._say)

    def _output(self, profile: Path) -> Output:
        if self._options.compiler == "gcc":
            return AfdoOutput(profile, version=afdo_version(os.environ))
        if self._options.stable:  # text, which holds no list of what is to be made for size
            return LlvmOutput(profile, stable=True)
        is_all = self._options.goal.puts_size_first
        return LlvmOutput(profile, form="extbinary", symbol_list=is_all, cold_symbols=not is_all)


def count_in_program(training: Training, directory: Path, say: Say) -> None:
    """Run each command of a training with the counting build in its place.

    Raises InputError if one fails. What earlier runs have left in the directory is forgotten.
    """
    shutil.rmtree(directory, ignore_errors=True)
    for command in training.commands:
        source = "" if training.input is None else f" < {shlex.quote(str(training.input))}"
        say(CommandLine(f"{command}{source}"))
        with reading(training.input) as stdin:
            done = subprocess.run(command_words(command), stdin=stdin)
        read = what_it_read(training.input)
        check_ended(done.returncode, "the training run", command, training, read)
    if not any(directory.glob("*.profraw")):
        raise InputError(
            "the training run has written no counts",
            where=str(directory),
            cure="The build must take CFLAGS and LDFLAGS, and the program end by itself.",
        )


def merge_counts(directory: Path, profile: Path, say: Say) -> None:
    """Write the profile for `-fprofile-use` by the first llvm-profdata that reads the counts.

    Each reads those of its own version of clang. Raises MissingToolError where there is none, else
    OutputError with what the first one said.
    """
    tools = llvm_tools("llvm-profdata")
    if not tools:
        raise MissingToolError(
            "llvm-profdata is not installed",
            cure="Install it (Debian: apt-get install llvm-22), or name it in LLVM_PROFDATA.",
        )
    failures = []
    for tool in tools:
        command = [tool, "merge", "-o", str(profile), str(directory)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if not done.returncode:
            say(CommandLine(shlex.join(command)))
            return
        failures.append(last_lines(done.stderr))
    raise OutputError(
        f"llvm-profdata could not add the counts up: {failures[0]}",
        where=str(profile),
        cure="LLVM_PROFDATA names the llvm-profdata that belongs to the compiler.",
    )
