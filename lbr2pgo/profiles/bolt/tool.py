"""llvm-bolt where it is installed."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from lbr2pgo.profiles.llvm_tools import last_lines, llvm_tools
from lbr2pgo.support.errors import MissingToolError, OutputError


def find_bolt() -> str | None:
    """Path of llvm-bolt, see `llvm_tools`; None if there is none."""
    return next(iter(llvm_tools("llvm-bolt")), None)


def needed_bolt() -> str:
    """As `find_bolt`; raises MissingToolError if there is none."""
    tool = find_bolt()
    if tool is None:
        raise MissingToolError(
            "llvm-bolt is not installed",
            cure="Install it (Debian: apt-get install bolt-22), or name it in LLVM_BOLT.",
        )
    return tool


def yaml_of_fdata(tool: str, binary: str, write: Callable[[Path], None]) -> bytes:
    """Fdata, which is written to a path, as the YAML that llvm-bolt writes, with hashes of blocks.

    Nobody else can work these out: they are made of LLVM's names of instructions and numbers of
    registers. Raises OutputError, with the tool's last lines, if it fails.
    """
    with tempfile.TemporaryDirectory(prefix="lbr2pgo-") as folder:
        fdata = Path(folder) / "profile.fdata"
        write(fdata)
        return _written_by(tool, ("llvm-bolt", binary, "-data", str(fdata), "-o", os.devnull, "-w"))


def as_yaml_before(tool: str, binary: str, preaggregated: Path) -> bytes:
    """Counts of a program that BOLT made, as YAML of what it was made of: see `yaml_of_fdata`.

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
