"""The whole loop: build, train, convert, rebuild, optimise after the link, measure."""

from __future__ import annotations

import filecmp
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lbr2pgo.analyses.sample_quality import density
from lbr2pgo.build.flags import Wanted, plain_flags, profile_flags
from lbr2pgo.build.measure import Candidate, Measured, check_runs, measure
from lbr2pgo.build.post_link import bolt, bolt_command, find_bolt
from lbr2pgo.build.steps import Say, command_words, keep_copy, run_build, with_binary
from lbr2pgo.build.stored import judge
from lbr2pgo.build.training import (
    Training,
    make_profile,
    record,
    shorter_period,
    walks_frame_pointers,
)
from lbr2pgo.build.verdict import Built
from lbr2pgo.profiles.formats import read_written
from lbr2pgo.profiles.formats.fdata import FdataOutput
from lbr2pgo.profiles.formats.llvm import LlvmOutput
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.probes import has_probes
from lbr2pgo.support.errors import InputError, MissingToolError


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """One loop; checked on construction, before anything is built in vain.

    Raises InputError if nothing says where a profile comes from, or for a senseless `runs`.
    """

    build: str
    """A shell command that compiles anew with the CFLAGS, CXXFLAGS and LDFLAGS that it is given."""
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
    runs: int
    work: Path
    """Directory for the recording, the profiles and the first build."""

    def __post_init__(self) -> None:
        check_runs(self.runs)
        if self.train is None and (self.profile is None or self.bolt):
            raise InputError(
                "there is no training command",
                cure="Give --train 'CMD'. Without BOLT, a stored --profile does as well.",
            )


class Loop:
    """Goes through the steps of one loop; `say` takes what each is and its command."""

    def __init__(self, options: LoopOptions, say: Say) -> None:
        self.options, self.binary, self._say = options, options.binary, say
        self.builds: list[Built] = []
        """Those that were made, the plain one first."""
        self._training = options.train
        self._step = 0

    def run(self) -> list[Measured]:
        """Optimise the binary in its place; gives what each build costs, the plain one first.

        The list is empty where the command to be measured does not name the binary. With `bolt`,
        the last one lies beside the binary, its name ends in `.bolt`. Raises as the steps do;
        what they made until then stays in the work directory.
        """
        bolt_tool = self._bolt_tool()
        self.options.work.mkdir(parents=True, exist_ok=True)
        plain = self._build_plain()
        self.builds = [Built(plain, plain_flags(self._wanted))]
        profile = self._profile(plain)
        if profile is not None:
            self._rebuild(profile, plain)
            self.builds.append(Built(self.binary, profile_flags(profile, self._wanted), profile))
        if bolt_tool is not None:
            self.builds.append(self._post_link(bolt_tool))
        return self._measure([each.path for each in self.builds])

    def _next(self, title: str) -> None:
        self._step += 1
        self._say(f"{self._step}. {title}")

    def _in_work(self, ending: str) -> Path:
        return self.options.work / f"{self.binary.name}.{ending}"

    def _bolt_tool(self) -> str | None:
        """Before anything is built in vain."""
        tool = find_bolt() if self.options.bolt else None
        if self.options.bolt and tool is None:
            raise MissingToolError(
                "llvm-bolt is not installed",
                cure="Install it (Debian: apt-get install bolt-22), or name it in LLVM_BOLT.",
            )
        return tool

    def _build_plain(self) -> Path:
        self._next("Build what is to be recorded")
        run_build(self.options.build, plain_flags(self._wanted), self.binary, self._say)
        lacking = self._lacking(Image.open(self.binary))
        if lacking is not None:
            raise InputError(
                f"has no {lacking}: the build did not take the flags that it was given",
                where=str(self.binary),
                cure="It must use CFLAGS (CXXFLAGS, LDFLAGS) of the environment: in a Makefile, "
                "set them with ?=; CMake takes them in a fresh build directory only (--fresh).",
            )
        kept = self._in_work("before")
        keep_copy(self.binary, kept)
        return kept

    @property
    def _wanted(self) -> Wanted:
        options = self.options
        walks_frames = options.train is not None and walks_frame_pointers(options.train)
        return Wanted(options.bolt, options.probes, walks_frames)

    def _lacking(self, image: Image) -> str | None:
        """What the profile will be told by, and the build has not got."""
        if not DebugInfo.open(image).present:
            return "debug information"
        if self.options.probes and not has_probes(image):
            return "pseudo probes"
        return None

    def _profile(self, plain: Path) -> Path | None:
        if self.options.profile is not None:
            self._next(f"Look at the profile {self.options.profile}")
            verdict = judge(self.options.profile, plain)
            if verdict.said:
                self._say(f"   {'Warning' if verdict.is_warning else 'Note'}: {verdict.said}.")
            return self.options.profile if verdict.usable else None
        recording, profile = self._in_work("perf.data"), self._in_work("prof")
        period = self._make_profile(recording, profile)
        if self._trains.period is None and period is not None:
            self._make_denser(recording, profile, period)
        return profile

    def _make_profile(self, recording: Path, profile: Path) -> int | None:
        """Train and convert; gives the period of the software LBR, None of hardware."""
        period = self._train(self._trains, recording)
        self._next("Convert for the compiler")
        contexts: Literal["nested", "auto"] = "nested" if self._trains.call_graph else "auto"
        output = LlvmOutput(profile, contexts=contexts)
        make_profile(recording, self.binary, self._say, output)
        return period

    def _make_denser(self, recording: Path, profile: Path, period: int) -> None:
        """Record once more, with a shorter period, if the profile is thin."""
        samples = read_written(profile)
        assert isinstance(samples, SampleProfile)
        shorter = shorter_period(period, density(samples))
        if shorter is not None:
            self._say(f"   Too few samples: trains again, with a period of {shorter:,}.")
            self._training = replace(self._trains, period=shorter)
            self._make_profile(recording, profile)

    @property
    def _trains(self) -> Training:
        assert self._training is not None  # LoopOptions checks it
        return self._training

    def _train(self, training: Training, recording: Path) -> int | None:
        self._next("Train")
        return record(training, recording, self._say)

    def _rebuild(self, profile: Path, plain: Path) -> None:
        self._next("Build with the profile")
        flags = profile_flags(profile, self._wanted)
        run_build(self.options.build, flags, self.binary, self._say)
        if filecmp.cmp(self.binary, plain, shallow=False):
            raise InputError(
                "is as it was before: the build did not compile it anew, or not with its flags",
                where=str(self.binary),
                cure="Let --build start from scratch and take CFLAGS from the environment, as "
                "`make clean all` and `cmake --fresh …` do.",
            )

    def _post_link(self, tool: str) -> Built:
        """BOLT needs a recording of the very binary that it rewrites."""
        recording, fdata = self._in_work("bolt.perf.data"), self._in_work("fdata")
        self._train(replace(self._trains, call_graph=False), recording)
        self._next("Convert for BOLT")
        make_profile(recording, self.binary, self._say, FdataOutput(fdata))
        self._next("Optimise after the link")
        output = self.binary.with_name(f"{self.binary.name}.bolt")
        command = bolt_command(tool, self.binary, fdata, output)
        self._say(f"   {' '.join(command)}")
        bolt(tool, self.binary, fdata, output)
        before = self.builds[-1]
        return Built(output, before.flags, before.profile, tuple(command))

    def _measure(self, builds: Sequence[Path]) -> list[Measured]:
        self._next("Measure")
        trained = self.options.train.command if self.options.train else None
        text = self.options.measure or trained
        commands = [text and with_binary(text, self.binary, build) for build in builds]
        candidates = [
            Candidate(str(build), command_words(command))
            for build, command in zip(builds, commands, strict=True)
            if command
        ]
        if not candidates:
            self._say(f"   Not measured: no command names {self.binary} (see --measure).")
            return []
        self._say(f"   {text}")
        return measure(candidates, self.options.runs)
