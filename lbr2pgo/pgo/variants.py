"""Builds of one program by kind of profile, each made by an `lbr2pgo pgo` of its own."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic

from lbr2pgo.pgo import COUNTERS, NO_TRAINING_BUILD, NOT_LAID_OUT, PROFILES
from lbr2pgo.pgo.goal import SPEED
from lbr2pgo.pgo.kinds import INSTRUMENTED, SHIPPED, ProfileKind
from lbr2pgo.pgo.limited import run_limited
from lbr2pgo.pgo.loop_options import LoopOptions
from lbr2pgo.pgo.steps import put
from lbr2pgo.pgo.training import Training, walks_frame_pointers
from lbr2pgo.pgo.workplace import Workplace
from lbr2pgo.support.errors import InputError


class VariantError(InputError):
    """A loop failed, whose log and words are given; `advice` is what it said would help."""

    def __init__(self, what: str, log: Path, advice: str, words: str) -> None:
        command = f"The command was: lbr2pgo pgo {words}"
        super().__init__(what, where=str(log), cure=f"{advice} {command}".strip())
        self.advice = advice


class Variants:
    """Builds in directories of their own; each takes what it shares with one before from there."""

    def __init__(self, loop: LoopOptions, training: Training) -> None:
        self._loop, self._training = loop, training
        self._directory = loop.work.absolute()

    def place(self, kind: ProfileKind) -> Workplace:
        """Where the files of a kind lie."""
        suffix = PROFILES[self._loop.compiler] if kind.is_sampled else COUNTERS
        return Workplace(self._directory / kind.unlaid.name, self._loop.binary, suffix)

    @property
    def plain(self) -> Path:
        """The build without a profile."""
        return self.place(SHIPPED[0]).plain

    def build_of(self, kind: ProfileKind) -> Path:
        """What came out."""
        work = self.place(kind)
        return work.file(kind.layout) if kind.layout else work.rebuilt

    def build_plain(self, tree: Path, ends: float | None) -> None:
        """The build without a profile, for that by lines to go on with; ends as `build`.

        Others are compared with it, so it has not even the block map that Propeller wants.
        """
        plainly = Variants(replace(self._loop, propeller=False, clone_paths=False), self._training)
        plainly._pgo(SHIPPED[0], tree, "build", "build", ends)

    def build(self, kind: ProfileKind, tree: Path, ends: float | None) -> None:
        """Train and build with the profile, or lay out what that gave.

        `ends` is when it is stopped, in the time of `monotonic`.
        """
        if kind.layout:
            self._pgo(kind, tree, kind.layout, kind.layout, ends)
            in_tree = Workplace(self._directory, tree / self._loop.binary)
            work = self.place(kind)
            made = in_tree.laid_out if kind.layout == "bolt" else work.propelled
            if not made.exists():
                said = self._said(kind, NOT_LAID_OUT)
                raise InputError(f"{NOT_LAID_OUT}{said}", where=str(self.log(kind)))
            put(made, self.build_of(kind))
        else:
            first = self._seed(kind)
            if first == "training-build":
                self._pgo(kind, tree, first, first, ends)
                first = "train"
            if kind.training and not kind.refined:
                self._check_training_build(kind)
            self._pgo(kind, tree, first, "again" if kind.refined else "rebuild", ends)

    def command(self, kind: ProfileKind) -> str:
        """Words of the `lbr2pgo pgo` that does the same alone."""
        return shlex.join(self._words(kind))

    def log(self, kind: ProfileKind) -> Path:
        """What its build printed."""
        return self.place(kind).file("log")

    def _seed(self, kind: ProfileKind) -> str:
        """Copy what another kind has built alike; gives the first step that is left."""
        if kind == SHIPPED[0]:
            return "train"
        if kind.refined:
            return self._seed_refined(kind)
        if kind == INSTRUMENTED:
            self._copy(SHIPPED[0], kind)
            return "training-build"
        if kind.told_by == "contexts":
            other = ProfileKind("probes", kind.training)
            self._copy(other, kind, "training")
            training = replace(self._training, call_graph=True)
            return "training-build" if walks_frame_pointers(training) else "train"
        if kind.training:
            self._copy(ProfileKind(kind.told_by), kind)
            return "training-build"
        return "build"

    def _check_training_build(self, kind: ProfileKind) -> None:
        """A loop goes on without one; in a search, that kind was tried already."""
        if not self.place(kind).training.exists():
            said = self._said(kind, NO_TRAINING_BUILD) or "as without contexts"
            raise InputError(f"there is no training build: {said}", where=str(self.log(kind)))

    def _said(self, kind: ProfileKind, beginning: str) -> str:
        """The last thing that began so in the log of a kind, without that; empty for none."""
        log = self.log(kind).read_text(errors="replace") if self.log(kind).exists() else ""
        notes = [line for line in log.splitlines() if beginning in line]
        return notes[-1].partition(beginning)[2] if notes else ""

    def _seed_refined(self, kind: ProfileKind) -> str:
        first, last = "rebuild", PROFILES[self._loop.compiler]
        if {"exact", "both"} & set(kind.refined):
            first, last = "train", "training"
        elif "again" in kind.refined:
            first, last = "again", "after"
        self._copy(kind.unrefined, kind, last)
        return first

    def _copy(self, source: ProfileKind, target: ProfileKind, *endings: str) -> None:
        old, new = self.place(source), self.place(target)
        new.begin()
        for ending in ("before", "marked", *endings):
            if old.file(ending).exists():
                shutil.copy2(old.file(ending), new.file(ending))
        if old.compilers.exists():  # the build had to go this way
            new.compilers.mkdir(exist_ok=True)

    def _pgo(
        self, kind: ProfileKind, tree: Path, first: str, last: str, ends: float | None
    ) -> None:
        self.place(kind).directory.mkdir(parents=True, exist_ok=True)
        copied = [] if tree == Path.cwd() else ["--copy-of", str(Path.cwd())]
        words = [*self._words(kind), *copied, "--from-step", first, "--to-step", last]
        command = [sys.executable, "-m", "lbr2pgo", "pgo", "--verbose", *words]
        seconds = None if ends is None else ends - monotonic()
        code = run_limited(command, tree, self.log(kind), seconds, self._training.input)
        if code:
            said = self.log(kind).read_text(errors="replace")
            _, _, error = said.rpartition("lbr2pgo: error: ")
            what, *cure = error.splitlines() or ["it said nothing"]
            raise VariantError(what, self.log(kind), " ".join(cure), shlex.join(words))

    def _words(self, kind: ProfileKind) -> Sequence[str]:
        loop, training = self._loop, self._training
        trains = [word for command in training.commands for word in ("--train", command)]
        period = [] if training.period is None else ["--period", str(training.period)]
        return [
            "--build", loop.build, "--binary", str(loop.binary), *trains, *kind.options(),
            *period, "--compiler", loop.compiler, *(["--emulate"] if training.emulate else []),
            *(["--any-status"] if training.any_status else []),
            *([f"--{loop.layout}"] if loop.layout else []),
            *(["--propeller-clone-paths"] if loop.clone_paths else []),
            *(["--remarks"] if loop.remarks else []),
            *(["--for", loop.goal.name] if loop.goal != SPEED else []),
            "--work", str(self.place(kind).directory),
        ]  # fmt: skip
