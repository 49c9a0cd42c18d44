"""Where a loop keeps what it makes, so that each step can begin where an earlier loop ended."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.support.errors import InputError


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

    @property
    def plain(self) -> Path:
        """What the others are measured against: without a profile, and nothing of ours in it."""
        return self.file("before")

    @property
    def marked(self) -> Path:
        """The same with what profiles and layouts need in its code, where they need any."""
        return self.file("marked")

    @property
    def unprofiled(self) -> Path:
        """The build without a profile that a profile or a layout changes."""
        return self.marked if self.marked.exists() else need(self.plain, "build")

    @property
    def training(self) -> Path:
        """The one that is recorded for the compiler, if that is not the plain one."""
        return self.file("training")

    @property
    def recorded(self) -> Path:
        """What the compiler's profile is recorded of."""
        return self.training if self.training.exists() else self.unprofiled

    @property
    def rebuilt(self) -> Path:
        """The one that the compiler's profile went into."""
        return self.file("after")

    @property
    def newest(self) -> Path:
        """The rebuilt one or, where there is none, the one without a profile."""
        return self.rebuilt if self.rebuilt.exists() else self.unprofiled

    @property
    def recording(self) -> Path:
        """Of what is recorded for the compiler."""
        return self.file("perf.data")

    @property
    def plain_recording(self) -> Path:
        """Of the plain build, where that is recorded besides."""
        return self.file("plain.perf.data")

    @property
    def second_recording(self) -> Path:
        """Of the build that the profile went into, for another profile."""
        return self.file("second.perf.data")

    @property
    def counts(self) -> Path:
        """Directory of what a program that counts has written."""
        return self.file("profraw")

    @property
    def profile(self) -> Path:
        """For the compiler."""
        return self.file(self.suffix)

    @property
    def propeller_recording(self) -> Path:
        """Of the newest build."""
        return self.file("propeller.perf.data")

    @property
    def clusters(self) -> Path:
        """Blocks in their new order, for clang."""
        return self.file("propeller-cc")

    @property
    def order(self) -> Path:
        """Parts of functions in their new order, for lld."""
        return self.file("propeller-ld")

    @property
    def propelled(self) -> Path:
        """The build that these went into."""
        return self.file("propelled")

    @property
    def bolt_recording(self) -> Path:
        """Of the newest build."""
        return self.file("bolt.perf.data")

    @property
    def fdata(self) -> Path:
        """For llvm-bolt."""
        return self.file("fdata")

    @property
    def log(self) -> Path:
        """What builds have printed, one after the other."""
        return self.file("build.log")

    @property
    def commands(self) -> Path:
        """What steps have run, a script."""
        return self.file("commands.sh")

    @property
    def compilers(self) -> Path:
        """A folder of compilers that add flags, if a build needs it."""
        return self.file("compilers")

    @property
    def laid_out(self) -> Path:
        """What llvm-bolt makes; it is to be shipped, so it lies beside the binary."""
        return self.binary.with_name(f"{self.binary.name}.bolt")

    def begin(self) -> None:
        """Forget the builds of an earlier loop, and how flags reached them."""
        self.directory.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.compilers, ignore_errors=True)
        made = self.plain, self.marked, self.training, self.rebuilt, self.propelled, self.laid_out
        for path in (*made, self.log, self.commands):
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
