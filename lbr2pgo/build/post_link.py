"""The post-link step: llvm-bolt, with the options that a build wants unless it says otherwise."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lbr2pgo.support.errors import OutputError

BOLT_OPTIONS = (
    "-reorder-blocks=ext-tsp",
    "-reorder-functions=hfsort",
    "-split-functions",
    "-split-all-cold",
)
"""What llvm-bolt is asked for: layout of blocks and functions, cold code apart."""

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


def bolt_command(
    tool: str, binary: Path, fdata: Path, output: Path, options: Sequence[str] = ()
) -> list[str]:
    """The command line of the tool at path `tool`; any `options` replace `BOLT_OPTIONS`."""
    files = [str(binary), "-o", str(output), "-data", str(fdata)]
    return [tool, *files, *(options or BOLT_OPTIONS)]


def bolt(tool: str, binary: Path, fdata: Path, output: Path, options: Sequence[str] = ()) -> str:
    """Write `output`, an optimised `binary`; gives what `bolt_command` said.

    The output appears whole or not at all.
    Raises OutputError, with the tool's last lines, if it fails.
    """
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".lbr2pgo-") as folder:
        unfinished = Path(folder) / output.name
        done = subprocess.run(
            bolt_command(tool, binary, fdata, unfinished, options),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        if done.returncode != 0 or not unfinished.exists():
            said = [line for line in done.stdout.splitlines() if line.strip()]
            raise OutputError(
                f"llvm-bolt failed: {' / '.join(said[-_LAST_LINES:]) or 'it said nothing'}",
                where=str(output),
                cure="Function reordering needs a binary linked with -Wl,--emit-relocs.",
            )
        unfinished.replace(output)
    return done.stdout
