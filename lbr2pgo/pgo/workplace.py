"""Where a loop keeps what it makes, so that each step can begin where an earlier loop ended."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.support.errors import InputError


class _File:
    """A file of a workplace, by what its name ends in."""

    def __init__(self, ending: str) -> None:
        self._ending = ending

    def __get__(self, work: Workplace, _: type) -> Path:
        return work.file(self._ending)


@dataclass(frozen=True, slots=True)
class Workplace:
    """Files of one program in a directory, which may be deleted when all is done."""

    directory: Path
    binary: Path
    suffix: str = "prof"
    """What the name of the compiler's profile ends in."""

    def file(self, ending: str) -> Path:
        """One of them."""
        return self.directory / f"{self.binary.name}.{ending}"

    plain = _File("before")
    """What the others are measured against: without a profile, and nothing of ours in it."""
    marked = _File("marked")
    """With what profiles and layouts need in its code, where that is recorded or used as it is."""

    @property
    def unprofiled(self) -> Path:
        """The build without a profile that a profile or a layout changes."""
        return self.marked if self.marked.exists() else need(self.plain, "build")

    training = _File("training")
    """The one that is recorded for the compiler, if that is not the plain one."""

    @property
    def recorded(self) -> Path:
        """What the compiler's profile is recorded of."""
        return self.training if self.training.exists() else self.unprofiled

    rebuilt = _File("after")
    """The one that the compiler's profile went into."""

    @property
    def newest(self) -> Path:
        """The rebuilt one or, where there is none, the one without a profile."""
        return self.rebuilt if self.rebuilt.exists() else self.unprofiled

    recording = _File("perf.data")
    """Of what is recorded for the compiler."""
    plain_recording = _File("plain.perf.data")
    """Of the plain build, where that is recorded besides."""
    second_recording = _File("second.perf.data")
    """Of the build that the profile went into, for another profile."""
    counts = _File("profraw")
    """Directory of what a program that counts has written."""

    @property
    def profile(self) -> Path:
        """For the compiler."""
        return self.file(self.suffix)

    propeller_recording = _File("propeller.perf.data")
    """Of the newest build."""
    clusters = _File("propeller-cc")
    """Blocks in their new order, for clang."""
    order = _File("propeller-ld")
    """Parts of functions in their new order, for lld."""
    propelled = _File("propelled")
    """The build that these went into."""
    start_recording = _File("start.perf.data")
    """Of the newest build's start."""
    start_order = _File("startup")
    """Functions in the order of that, for lld."""
    ordered = _File("ordered")
    """The build that it went into."""
    ordered_recording = _File("ordered.perf.data")
    """Of the start of that."""
    bolt_recording = _File("bolt.perf.data")
    """Of the newest build."""
    fdata = _File("fdata")
    """For llvm-bolt."""
    log = _File("build.log")
    """What builds have printed, one after the other."""
    commands = _File("commands.sh")
    """What steps have run, a script."""
    compilers = _File("compilers")
    """A folder of compilers that add flags, if a build needs it."""

    @property
    def laid_out(self) -> Path:
        """What llvm-bolt makes; it is to be shipped, so it lies beside the binary."""
        return self.binary.with_name(f"{self.binary.name}.bolt")

    def begin(self) -> None:
        """Forget the builds of an earlier loop, and how flags reached them."""
        self.directory.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.compilers, ignore_errors=True)
        made = self.plain, self.marked, self.training, self.rebuilt, self.propelled, self.ordered
        for path in (*made, self.laid_out, self.log, self.commands):
            path.unlink(missing_ok=True)


def need(path: Path, step: str) -> Path:
    """What an earlier step made; raises InputError where that was not gone through."""
    if not path.exists():
        raise InputError(
            "is not there, and this step needs it",
            where=str(path),
            cure=f"Go through an earlier one first: --from-step {step}.",
        )
    return path
