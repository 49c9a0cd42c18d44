"""llvm-bolt where it is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lbr2pgo.support.errors import MissingToolError, OutputError

_NAME = re.compile(r"llvm-bolt-([0-9]+)")
_LAST_LINES = 5


def find_bolt() -> str | None:
    """Path of llvm-bolt: `LLVM_BOLT` if that is set, else by name, else the newest llvm-bolt-N.

    None if there is none. Debian has only names with a version.
    """
    plain = shutil.which(os.environ.get("LLVM_BOLT") or "llvm-bolt")
    if plain is not None or os.environ.get("LLVM_BOLT"):
        return plain
    folders = [Path(folder) for folder in os.get_exec_path() if Path(folder).is_dir()]
    names = {path.name for folder in folders for path in folder.glob("llvm-bolt-*")}
    numbered = [(int(match[1]), match[0]) for match in map(_NAME.fullmatch, names) if match]
    return shutil.which(max(numbered)[1]) if numbered else None


def needed_bolt() -> str:
    """As `find_bolt`; raises MissingToolError if there is none."""
    tool = find_bolt()
    if tool is None:
        raise MissingToolError(
            "llvm-bolt is not installed",
            cure="Install it (Debian: apt-get install bolt-22), or name it in LLVM_BOLT.",
        )
    return tool


def last_lines(said: str) -> str:
    """The end of what a tool said, for an error."""
    lines = [line for line in said.splitlines() if line.strip()]
    return " / ".join(lines[-_LAST_LINES:]) or "it said nothing"


def as_yaml(tool: str, binary: str, fdata: Path) -> bytes:
    """A profile as the YAML that llvm-bolt writes, with the hashes of all blocks.

    Nobody else can work these out: they are made of LLVM's names of instructions and numbers of
    registers. Raises OutputError, with the tool's last lines, if it fails.
    """
    return _written_by(tool, ("llvm-bolt", binary, "-data", str(fdata), "-o", os.devnull, "-w"))


def as_yaml_before(tool: str, binary: str, preaggregated: Path) -> bytes:
    """Counts of a program that BOLT made, as YAML of what it was made of: see `as_yaml`.

    The hashes stand in the program's address translation, but for what BOLT left alone.
    """
    words = "-pa", "-p", str(preaggregated), "-profile-format=yaml", "-o"
    return _written_by(tool, ("perf2bolt", binary, *words))


def _written_by(tool: str, words: Sequence[str]) -> bytes:
    """What llvm-bolt writes to the file whose name comes last; it goes by the name of its tools."""
    with tempfile.TemporaryDirectory(prefix="lbr2pgo-") as folder:
        written = Path(folder) / "profile.yaml"
        done = subprocess.run(
            [*words, str(written)], executable=tool,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        if done.returncode != 0 or not written.exists():
            raise OutputError(f"llvm-bolt failed: {last_lines(done.stdout)}", where=words[1])
        return written.read_bytes()
