"""LLVM's tools where they are installed, and what they say."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

_LAST_LINES = 5


def llvm_tools(name: str) -> list[str]:
    """Paths of one of LLVM's tools, what is to be tried first at the front.

    The one that a variable names (`LLVM_BOLT` for llvm-bolt) if that is set, else by name, and then
    by name and version, the newest first: Debian has only these.
    """
    named = os.environ.get(name.replace("-", "_").upper())
    plain = shutil.which(named or name)
    if named:
        return [plain] if plain is not None else []
    pattern = re.compile(rf"{name}-([0-9]+)")
    folders = [Path(folder) for folder in os.get_exec_path() if Path(folder).is_dir()]
    names = {path.name for folder in folders for path in folder.glob(f"{name}-*")}
    numbered = [(int(match[1]), match[0]) for match in map(pattern.fullmatch, names) if match]
    found = [plain, *(shutil.which(each) for _, each in sorted(numbered, reverse=True))]
    return [tool for tool in found if tool is not None]


def last_lines(said: str) -> str:
    """The end of what a tool said, for an error."""
    lines = [line for line in said.splitlines() if line.strip()]
    return " / ".join(lines[-_LAST_LINES:]) or "it said nothing"
