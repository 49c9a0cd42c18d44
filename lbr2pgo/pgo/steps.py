"""Running the user's commands, each said before it runs."""

from __future__ import annotations

import filecmp
import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

from lbr2pgo.pgo.flags import BuildFlags
from lbr2pgo.pgo.limited import run_whole
from lbr2pgo.pgo.reach import ByVariables
from lbr2pgo.support.errors import InputError

Say = Callable[[str], None]
"""Takes a line for the user."""

_FOR_A_SHELL = re.compile(r"[|&;<>()$`*?\[\]{}~!\n=#]")
_OTHER_COMPILER = "Set CC and CXX to a recent clang; for GCC give --compiler gcc."


def command_words(text: str) -> tuple[str, ...]:
    """A command line as words; through a shell if it holds what only a shell understands.

    >>> command_words("./app 'a b'"), command_words("./app < in")
    (('./app', 'a b'), ('/bin/sh', '-c', './app < in'))
    """
    if _FOR_A_SHELL.search(text):
        return ("/bin/sh", "-c", text)
    return tuple(shlex.split(text))


def with_binary(text: str, binary: Path, other: Path) -> str | None:
    """The command with another program in place of the binary; None if it does not name it.

    The binary is looked for as it was given, with or without `./`.

    >>> with_binary("./app -o app.txt", Path("app"), Path("app.bolt"))
    './app.bolt -o app.txt'
    """
    found = re.compile(rf"(?<![\w./-])(?:\./)?{re.escape(str(binary))}(?![\w./-])")
    if not found.search(text):
        return None
    # Without a slash, it would be looked for in PATH.
    program = str(other) if "/" in str(other) else f"./{other}"
    return found.sub(lambda _: shlex.quote(program), text)


def run_build(command: str, flags: BuildFlags, binary: Path, say: Say, way: ByVariables) -> None:
    """Build through a shell, with flags that reach the compiler this way; its output passes.

    Raises InputError if it fails, saying which flags the compiler does not know, or if
    it leaves no binary.
    """
    settings = way.settings(flags, os.environ)
    command = way.command(command, flags)
    words = (f"{name}={shlex.quote(value)}" for name, value in settings.items())
    say(f"   {' '.join((*words, command))}")
    code = run_whole(["/bin/sh", "-c", command], {**os.environ, **settings})
    if code:
        refused = way.refused(flags, os.environ)
        raise InputError(
            f"the build failed with exit code {code}"
            + (f": {'; '.join(refused)}" if refused else ""),
            where=command,
            cure=_OTHER_COMPILER if refused else "Its own messages are above.",
        )
    if not binary.is_file():
        raise InputError(
            "the build left no such program", where=str(binary), cure="Name what it builds."
        )


def put(program: Path, place: Path) -> None:
    """Let a program be at a place, at once and whole: another one may be running from there."""
    if place.exists() and filecmp.cmp(program, place, shallow=False):
        return
    beside = place.with_name(f".lbr2pgo-{os.getpid()}-{place.name}")
    try:
        shutil.copy2(program, beside)
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)
