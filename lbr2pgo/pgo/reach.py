"""How flags reach the compiler of a build: by variables, in its command, or by the compiler's name.

A build takes them from CFLAGS, CXXFLAGS and LDFLAGS (GNU make's implicit rules, autoconf; CMake and
Meson when a build directory is set up), where `{flags}` stands in its command, or, if it sets its
flags itself, by compilers in front of those on PATH which add them.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.pgo.flags import BuildFlags

_PLACES = ("{flags}", "{cflags}", "{ldflags}")
_COMPILER = re.compile(r"(?:cc|c\+\+|gcc|g\+\+|clang|clang\+\+)(?:-[0-9]+)?")
_CACHE = "ccache"
_STRIP = re.compile(r"(?:strip|llvm-strip(?:-[0-9]+)?)")
# `-s` would take away at the link what samples find their lines by. Nor is what a compiler calls
# to be found in the folder: ccache under a compiler's name looks for another one of that name.
_ADDS_FLAGS = """#!/bin/sh
{named}for word do shift; [ "$word" = -s ] || set -- "$@" "$word"; done
PATH=${{PATH#{folder}:}} exec {program} "$@" {flags}
"""
# Objects of ccache go by its compiler and flags, which are to be neither a script nor in one.
# CMake names compilers by where it has found them.
_COMPILER_ELSEWHERE = """case $1 in
    -*) exec {program} "$@" ;;
    {folder}/*) name=${{1##*/}}; shift; set -- "$name" "$@" ;;
esac
"""
_STRIPS_NOTHING = """#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in -o) to=$2; shift ;; -o*) to=${1#-o} ;; -*) ;; *) from=$1 ;; esac
    shift
done
[ -z "$to" ] || exec cp "$from" "$to"
"""


@dataclass(frozen=True, slots=True)
class ByVariables:
    """In CFLAGS, CXXFLAGS and LDFLAGS, behind the user's own; other ways differ from this one."""

    def command(self, text: str, flags: BuildFlags) -> str:
        """The build's command, with the flags where it holds them."""
        return text

    def settings(self, flags: BuildFlags, environment: Mapping[str, str]) -> dict[str, str]:
        """The variables of the build's environment that carry the flags."""
        return flags.settings(environment)

    def advice(self, flags: BuildFlags, environment: Mapping[str, str]) -> tuple[str, ...]:
        """What to keep in the builds to come, a sentence each.

        >>> ByVariables().advice(BuildFlags(("-g",), ()), {"CFLAGS": "-O3"})
        ('Keep in CFLAGS: -O3 -g', 'Keep in CXXFLAGS: -O2 -g', 'Keep in LDFLAGS: ')
        """
        return _to_keep(flags.settings(environment))


@dataclass(frozen=True, slots=True)
class ByPlaceholder(ByVariables):
    """Where the command says `{flags}`, or `{cflags}` and `{ldflags}`."""

    def command(self, text: str, flags: BuildFlags) -> str:
        """With the flags in their places.

        >>> flags = BuildFlags(("-g",), ("-Wl,--build-id",))
        >>> ByPlaceholder().command("zig cc {flags} a.c && echo ${HOME}", flags)
        'zig cc -g -Wl,--build-id a.c && echo ${HOME}'
        """
        every = flags.compile, flags.link
        words = ((*flags.compile, *flags.link), *every)
        for place, some in zip(_PLACES, words, strict=True):
            text = text.replace(place, shlex.join(some))
        return text

    def settings(self, flags: BuildFlags, environment: Mapping[str, str]) -> dict[str, str]:
        """None."""
        return {}

    def advice(self, flags: BuildFlags, environment: Mapping[str, str]) -> tuple[str, ...]:
        """One line."""
        return (f"Keep in place of {{flags}}: {shlex.join((*flags.compile, *flags.link))}",)


@dataclass(frozen=True, slots=True)
class ByName(ByVariables):
    """By compilers of the same names in a folder that is first on PATH, beside a harmless strip.

    And ccache, if it is there.
    """

    folder: Path

    def settings(self, flags: BuildFlags, environment: Mapping[str, str]) -> dict[str, str]:
        """PATH, and what the user has set, or would get; writes the folder anew."""
        path = environment.get("PATH", os.defpath)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name, program in _programs(path):
            script = self.folder / name
            script.write_text(_script(name, program, flags, self.folder.resolve()))
            script.chmod(0o755)
        nothing = BuildFlags((), ()).settings(environment)
        return {**nothing, "PATH": f"{self.folder.resolve()}{os.pathsep}{path}"}

    def advice(self, flags: BuildFlags, environment: Mapping[str, str]) -> tuple[str, ...]:
        """What came to its own flags, and where."""
        said = "The build sets its flags itself, or strips what it built: change that there."
        return (*_to_keep(flags.settings({"CFLAGS": "", "CXXFLAGS": ""})), said)


def way_for(command: str) -> ByVariables:
    """The way that a build is given flags at first."""
    has_place = any(place in command for place in _PLACES)
    return ByPlaceholder() if has_place else ByVariables()


def _to_keep(settings: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence for each variable, or for some that are alike."""
    texts = {name: text.strip() for name, text in settings.items()}
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        names.setdefault(text, []).append(name)
    return tuple(f"Keep in {' and '.join(alike)}: {text}" for text, alike in names.items())


def _programs(path: str) -> Iterator[tuple[str, str]]:
    """Names and places of compilers and strips on a PATH."""
    names: set[str] = set()
    for folder in filter(os.path.isdir, path.split(os.pathsep)):
        names.update(filter(_is_wanted, os.listdir(folder)))
    for name in sorted(names):
        program = shutil.which(name, path=path)
        if program is not None:
            yield name, program


def _is_wanted(name: str) -> bool:
    return name == _CACHE or bool(_COMPILER.fullmatch(name) or _STRIP.fullmatch(name))


def _script(name: str, program: str, flags: BuildFlags, folder: Path) -> str:
    if _STRIP.fullmatch(name):
        return _STRIPS_NOTHING
    # Compiling alone needs no flags of the linker, which clang would say; GCC ignores this one.
    silent = ("-Wno-unused-command-line-argument",) if "clang" in name or name == _CACHE else ()
    where = {"program": shlex.quote(program), "folder": shlex.quote(str(folder))}
    named = _COMPILER_ELSEWHERE.format(**where) if name == _CACHE else ""
    words = shlex.join((*flags.compile, *flags.link, *silent))
    return _ADDS_FLAGS.format(named=named, flags=words, **where)
