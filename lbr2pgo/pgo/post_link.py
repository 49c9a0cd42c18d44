"""The post-link step: llvm-bolt, with the options that a build wants unless it says otherwise."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from lbr2pgo.profiles.llvm_tools import last_lines
from lbr2pgo.support.errors import OutputError

BOLT_OPTIONS = (
    "-reorder-blocks=ext-tsp",
    "-reorder-functions=cdsort",
    "-split-functions",
    "-split-all-cold",
)
"""What llvm-bolt is asked for: layout of blocks and functions, cold code apart."""
_INFERENCE = "-infer-stale-profile"
_PROFILED = re.compile(r"^BOLT-INFO: (\d+ out of \d+ functions .* profile)$", re.M)


def bolt_command(
    tool: str,
    binary: Path,
    profile: Path,
    output: Path,
    options: Sequence[str] = (),
    *,
    infers: bool = False,
) -> list[str]:
    """The command line of the tool at path `tool`; any `options` replace `BOLT_OPTIONS`.

    `infers`: the profile is YAML of an older build, whose counts are to be carried over.
    """
    files = [str(binary), "-o", str(output), "-data", str(profile)]
    return [tool, *files, *(options or BOLT_OPTIONS), *([_INFERENCE] if infers else ())]


def kept_for_bolt(profile: Path, *, infers: bool) -> str:
    """What to keep of a profile. YAML is fitted to later builds; fdata has offsets of one."""
    goes_with = "" if infers else ", for this very code: record anew once that has changed"
    return f"Keep {profile}: llvm-bolt reads it{goes_with}."


def bolt(
    tool: str,
    binary: Path,
    profile: Path,
    output: Path,
    options: Sequence[str] = (),
    *,
    infers: bool = False,
) -> str:
    """Write `output`, an optimised `binary`; gives what `bolt_command` said.

    The output appears whole or not at all.
    Raises OutputError, with the tool's last lines, if it fails.
    """
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".lbr2pgo-") as folder:
        unfinished = Path(folder) / output.name
        done = subprocess.run(
            bolt_command(tool, binary, profile, unfinished, options, infers=infers),
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


def profiled(said: str) -> Iterator[str]:
    """Of how many functions llvm-bolt said that it has counts."""
    return (match[1] for match in _PROFILED.finditer(said))
