"""Running the user's commands, each said before it runs."""

from __future__ import annotations

import filecmp
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, Self

from lbr2pgo.pgo.flags import BuildFlags
from lbr2pgo.pgo.limited import run_whole
from lbr2pgo.pgo.reach import ByVariables
from lbr2pgo.profiles.llvm_tools import llvm_tools
from lbr2pgo.support.errors import InputError

Say = Callable[[str], None]
"""Takes a line for the user."""


class SayOver(Protocol):
    """Takes a step that is over: what it is called, how long it took, and what came of it.

    And about how many seconds are left; None where that is not known yet.
    """

    def __call__(self, title: str, seconds: float, left: float | None, found: str = "") -> None:
        """Say so."""


class Title(str):
    """What is said when a step begins."""

    __slots__ = ()


class Detail(str):
    """What is said of a step, further in, for those who want to know more than what came of it."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Of its text alone."""
        return super().__new__(cls, f"   {text}")


class CommandLine(Detail):
    """A command of a step, which runs by itself."""

    __slots__ = ()


class NoProbesError(InputError):
    """Clang can place no pseudo probes in a program."""


_UNSUPPORTED = (
    (
        ".sleb128 expression is not absolute",
        NoProbesError,
        "clang places no pseudo probes in functions that it splits, nor where the linker relaxes "
        "code, as for RISC-V",
        "Give --lines.",
    ),
    (
        "unsupported option '-fbasic-block-",
        InputError,
        "clang lays out no blocks for this target",
        "Give --bolt in place of --propeller.",
    ),
)
"""What clang says where it lacks what it has elsewhere, the error that this is, and its cure."""

_FOR_A_SHELL = re.compile(r"[|&;<>()$`*?\[\]{}~!\n=#]")
_SEVERAL = re.compile(r"[|&;()$`\n]")
"""What variables in front of a command do not reach in the rest of a line."""
_COMPLAINT = re.compile(r"^(\S+): .*?[^\w\s]\s?(-[\w.,/=+:-]+)", re.M)
"""What compilers say of a flag that they do not know, in whatever language."""
_SHOWN = 30
"""Lines at the end of a build's output that are shown where it fails."""


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


def run_build(
    command: str, flags: BuildFlags, binary: Path, say: Say, way: ByVariables, log: Path
) -> None:
    """Build through a shell, with flags that reach the compiler this way; its output goes to a log.

    Raises InputError if it fails, saying which flags which compiler does not know, or if
    it leaves no binary; NoProbesError if it fails for these.
    """
    settings = {**flags.cache_settings(os.environ), **way.settings(flags, os.environ)}
    command = way.command(command, flags)
    words = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
    is_whole = not words or not _SEVERAL.search(command)
    whole = command if is_whole else shlex.join(("sh", "-c", command))
    say(CommandLine(" ".join((*words, whole))))
    code, printed = _run_logged(command, {**os.environ, **settings}, log)
    if code:
        _refuse_unsupported(printed, log)
        for line in printed.splitlines()[-_SHOWN:]:
            say(line)
        refused = _refused(printed, flags)
        raise InputError(
            f"the build failed with exit code {code}"
            + (f": {'; '.join(refused)}" if refused else ""),
            where=command,
            cure=_other_compiler() if refused else f"All that it printed is in {log}.",
        )
    if not binary.is_file():
        raise InputError(
            "the build left no such program", where=str(binary), cure="Name what it builds."
        )


def _refuse_unsupported(printed: str, log: Path) -> None:
    for said, error, what, cure in _UNSUPPORTED:
        if said in printed:
            raise error(what, where=str(log), cure=cure)


def _run_logged(command: str, environment: Mapping[str, str], log: Path) -> tuple[int, str]:
    """Run through a shell; gives its exit code and what it printed, which a log keeps too."""
    with log.open("ab+") as stream:
        began = stream.seek(0, os.SEEK_END)
        code = run_whole(
            ["/bin/sh", "-c", command], environment,
            stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT,
        )  # fmt: skip
        stream.seek(began)
        return code, stream.read().decode(errors="replace")


def _refused(printed: str, flags: BuildFlags) -> list[str]:
    """Which flags are unknown to the compilers that the build called, a sentence each."""
    found: dict[str, dict[str, None]] = {}
    for compiler, flag in _COMPLAINT.findall(printed):
        if flag in flags.compile:
            found.setdefault(compiler, {})[flag.partition("=")[0]] = None
    return [f"{compiler} does not know {', '.join(unknown)}" for compiler, unknown in found.items()]


def _other_compiler() -> str:
    there = [Path(tool).name for tool in llvm_tools("clang")[:1]]
    given = [f"CC={clang} CXX={clang.replace('clang', 'clang++')}" for clang in there]
    offer = f"Let the build call the clang that is there: {given[0]}" if given else "Install clang"
    return f"{offer}; for GCC give --compiler gcc."


def place(build: Path, binary: Path, say: Say) -> None:
    """Let a build be in the binary's place, for the command that is said next."""
    say(CommandLine(shlex.join(("cp", str(build), str(binary)))))
    put(build, binary)


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
