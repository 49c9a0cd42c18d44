"""A committed profile for the tree as it is now: its provenance tells which tree it is of."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from lbr2pgo.profiles.carried.carry import Carried, UnrelatedError, carry_over_sources
from lbr2pgo.profiles.carried.source_tree import SourceTree
from lbr2pgo.program.demangle import short_name
from lbr2pgo.provenance.told import read_provenance
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError, MissingToolError, writable

_THERE = "can't be written", "Choose another path."
_SHORT = 12
"""Digits of a commit that are shown."""
_NAMED = 3
"""Functions that are."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What comes of a committed profile."""

    profile: Path
    carried: Carried | None
    """None where it is used as it is."""
    said: str
    """How much was carried, or why nothing was; in a line."""
    share: float = 1.0
    """Of its counts that are there still, from 0 to 1, as far as anybody knows."""

    def write(self, path: Path) -> bool:
        """Write it; a file that holds the same already stays, so that builds find nothing new.

        Returns whether it was written; raises OutputError where it can't be.
        """
        make: Callable[[Path], object] = self._copy if self.carried is None else self.carried.write
        with writable(path, *_THERE), TemporaryDirectory(dir=path.parent) as folder:
            new = Path(folder) / path.name
            make(new)
            is_other = not path.is_file() or path.read_bytes() != new.read_bytes()
            if is_other:
                new.replace(path)
        return is_other

    def _copy(self, path: Path) -> None:
        shutil.copyfile(self.profile, path)


def carry_committed(profile: Path) -> Committed:
    """A profile for the working tree that it lies in.

    Raises InputError for a profile that can't be read, and for damaged provenance.
    """
    provenance = read_provenance(profile)
    if provenance is None or provenance.revision is None:
        lack = "provenance (convert --provenance)" if provenance is None else "commit in it"
        return Committed(profile, None, f"{profile} is used as it is: it has no {lack}")
    root = _root(profile)
    if root is None:
        return Committed(profile, None, f"{profile} is used as it is: it is in no git repository")
    short = provenance.revision[:_SHORT]
    try:
        old = SourceTree.of_revision(root, provenance.revision)
        done = carry_over_sources(profile, old, SourceTree.of_working_tree(root))
    except UnrelatedError:
        said = f"{profile} is used as it is: hardly anything is left since {short}"
        return Committed(profile, None, said, share=0.0)
    except (InputError, MissingToolError) as error:
        return Committed(profile, None, f"{profile} is used as it is: {error.headline}")
    lost = ", ".join(map(short_name, islice(done.account.lost(), _NAMED)))
    named = f" (lost most in {lost})" if lost else ""
    said = f"{profile}: {done.verdict} since {short}{named}"
    return Committed(profile, done, said, done.account.carried())


def _root(profile: Path) -> Path | None:
    """Of the repository that a file lies in, wherever a link to it does."""
    folder = str(profile.resolve().parent)
    words = ["git", "-C", folder, "rev-parse", "--show-toplevel"]
    try:
        done = subprocess.run(words, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return Path(done.stdout.rstrip("\n")) if done.returncode == 0 else None
