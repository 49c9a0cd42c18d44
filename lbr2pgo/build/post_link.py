"""The post-link step: llvm-bolt, with the options that a build wants unless it says otherwise."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lbr2pgo.profiles.bolt.tool import last_lines
from lbr2pgo.support.errors import OutputError

BOLT_OPTIONS = (
    "-reorder-blocks=ext-tsp",
    "-reorder-functions=hfsort",
    "-split-functions",
    "-split-all-cold",
)
"""What llvm-bolt is asked for: layout of blocks and functions, cold code apart."""


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
            raise OutputError(
                f"llvm-bolt failed: {last_lines(done.stdout)}",
                where=str(output),
                cure="Function reordering needs a binary linked with -Wl,--emit-relocs.",
            )
        unfinished.replace(output)
    return done.stdout
