"""Programs by the names that people give them."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # see `lbr2pgo`

if TYPE_CHECKING:
    from pathlib import Path


def executable(text: str) -> Path:
    """The file that is meant by a program's name: one here, or else one on PATH (as gdb does)."""
    from pathlib import Path
    from shutil import which

    found = None if "/" in text or os.path.isfile(text) else which(text)
    return Path(found or text)


def runnable(name: str) -> str:
    """The same as the system takes it, which looks for a name without a slash on PATH alone."""
    path = executable(name)
    return os.path.join(".", path) if path.is_file() else name
