"""What a program of `fresh.py` is: its sources, and what it is run with."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from which_profile import call

HERE = Path(__file__).parent
DRIVERS = HERE / "programs" / "fresh"
SOURCES = Path("../sources")
"""As seen from a program's folder."""
_BUILD_TOOLS = "setuptools,wheel,cython,cffi,pycparser,packaging"
"""What pip wants to read the name of a source package, for once not compiled."""


@dataclass(frozen=True, slots=True)
class Package:
    """A source package of PyPI or of Debian, or a package of npm."""

    name: str
    version: str
    sha256: str
    by: str = "pip"

    def fetch(self) -> None:
        """Unpack it below this folder, if it is not there; ends where it has changed."""
        out = Path(self.name)
        if out.exists():
            return
        archives = Path("archives", self.name)
        archives.mkdir(parents=True, exist_ok=True)
        call(*self._download(archives))
        (archive,) = archives.glob("*.orig.tar.*[z2]" if self.by == "apt" else "*")
        if hashlib.sha256(archive.read_bytes()).hexdigest() != self.sha256:
            raise SystemExit(f"{archive} is not the one that was measured")
        out.mkdir()
        call("tar", "xf", archive, "-C", out, "--strip-components=1")

    def _download(self, folder: Path) -> tuple[object, ...]:
        if self.by == "apt":
            wanted = "apt-get source --download-only --only-source --tar-only"
            return "bash", "-c", f"cd {folder} && {wanted} {self.name}={self.version}"
        if self.by == "npm":
            wanted = f"{self.name}@{self.version}"
            return "npm", "pack", "--silent", wanted, "--pack-destination", folder
        pip = "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"
        wanted = f"{self.name}=={self.version}"
        return sys.executable, "-m", *pip, "--only-binary", _BUILD_TOOLS, "-d", folder, wanted


_INPUTS = (
    Package("mime-db", "1.54.0",
            "2b21054e65d0eabd58c5002d2713e968dd47b15700bfed4b7281a344ded1c420", "npm"),
    Package("world-atlas", "2.0.2",
            "032e7765f2ce00edaeafec23ff22bc3b77e42987c257da944cc585b452c05b97", "npm"),
    Package("world-countries", "5.1.0",
            "329eb6ef4099ffb590219c9beb634bf489a5e4b10d8ab0ac52a58ebf7b9f8495", "npm"),
    Package("shared-mime-info", "2.2-1",
            "418c480019d9865f67f922dfb88de00e9f38bf971205d55cdffab50432919e61", "apt"),
    Package("dejavu-fonts-ttf", "2.37.3",
            "b7013ac58f9225250619db82cfb72e99c37ca8195f2b5a06a9e6a95bc5e1c84a", "npm"),
    Package("source-serif-pro", "3.1.0",
            "9be0c15c87de592da1540d76737f8683be83d13627d70c2bf13c0a052128b2e5", "npm"),
)  # fmt: skip


def inputs(*names: str) -> tuple[Package, ...]:
    """Packages that only inputs are from, of those that more than one group has."""
    known = {package.name: package for package in _INPUTS}
    return tuple(known[name] for name in names)


def listed(folder: str, names: str, suffix: str = "c") -> list[str]:
    """Source files of these names, in a folder below that of sources."""
    return [f"{folder}/{name}.{suffix}" for name in names.split()]


@dataclass(frozen=True, slots=True)
class Program:
    """What is built, what it learns from, and what it is judged by, on other input."""

    name: str
    sources: Sequence[str]
    """Patterns below the folder of sources."""
    train: Sequence[str]
    """Arguments of each training run; $S is the folder of sources."""
    judged: Sequence[str]
    driver: str | None = None
    """Our source with its `main`, where it has none."""
    flags: str = ""
    """$D is the folder of drivers."""
    libraries: str = "-lm"

    def flags_of_paths(self) -> str:
        """Its flags, as a shell would take them."""
        return self.flags.replace("$S", str(SOURCES)).replace("$D", str(DRIVERS))

    def files(self) -> list[Path]:
        """Sources, from the program's folder, which is the working directory."""
        found = [file for each in self.sources for file in sorted(SOURCES.glob(each))]
        if self.driver is None:
            return found
        return [Path(shutil.copy(DRIVERS / self.driver, self.driver)), *found]


@dataclass(frozen=True, slots=True)
class Group:
    """Programs that were met at the same time."""

    packages: Sequence[Package]
    programs: Sequence[Program]
    make_inputs: Callable[[], None]
    """What no package has, in the working directory, with the packages below `sources`."""
