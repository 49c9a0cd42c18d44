"""Compiler and linker flags of each build of the loop, and the environment that carries them.

Builds take flags from CFLAGS, CXXFLAGS and LDFLAGS (GNU make's implicit rules, autoconf; CMake and
Meson when a build directory is set up). What the user has set there stays, before ours.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lbr2pgo.pgo import COMPILERS
from lbr2pgo.pgo.built_code import RECORD_FLAGS


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Whose flags they are."""

    debug_info: tuple[str, ...]
    """So that samples find their lines, inline frames and discriminators. Changes no code."""
    use_profile: str
    before_bolt: tuple[str, ...] = ()
    """Keeps together what BOLT wants to split itself."""


# LLVM: clang/docs/UsersManual.rst, "Using Sampling Profilers"; GCC writes discriminators unasked.
_CLANG = _Compiler(("-g", "-fdebug-info-for-profiling"), "-fprofile-sample-use")
_GCC = _Compiler(("-g",), "-fauto-profile", ("-fno-reorder-blocks-and-partition",))
_COMPILERS = dict(zip(COMPILERS, (_CLANG, _GCC), strict=True))

PROBES = ("-fpseudo-probe-for-profiling",)
"""So that samples find the blocks that they were compiled from (the same; both builds need it)."""
OVERWRITTEN = ("-Xclang", "-mllvm", "-Xclang", "-overwrite-existing-weights")
"""So that samples tell of a branch what they saw, and not the source what it expects.

Else clang keeps what `__builtin_expect` and `[[likely]]` say (llvm/lib/Transforms/IPO/
SampleProfile.cpp, SampleProfileLoader::generateMDProfMetadata), which a profile of counters
replaces. It pays by probes: docs/notes/contexts.md, "Large programs". Without -Xclang, ccache 4.7
takes it for an -o, and clang warns where CFLAGS reach the linker.
"""
UNPROBED = ("-mllvm=-sample-profile-remove-probe",)
"""So that none are left once the profile is read; nothing can be told by them afterwards.

What is split has to do without them: clang 22 can't write probes of blocks that have sections of
their own. With LTO the profile is read once more when the program is linked, and lld warns that
there are no probes any more: such a build is worse than by lines.
"""
KEPT_CALLS = (
    "-mllvm", "-enable-tail-merge=0", "-mllvm", "-simplifycfg-sink-common=0",
    "-Wno-unused-command-line-argument",
)  # fmt: skip
"""So that calls which are alike stay apart, each with its probe.

One that clang 22 makes of several, at the end of their blocks or behind them, has none: nothing
tells what called through it.
"""
UNRELAXED = ("-mno-relax", *KEPT_CALLS)
"""So that clang 22 can write probes where the linker relaxes code, as for RISC-V.

Calls have no probes in the code there, and are found by the lines around them: they want to be kept
in any build that is recorded.
"""
FRAME_POINTERS = (
    "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-fno-optimize-sibling-calls",
)  # fmt: skip
"""So that the kernel finds all callers of what it interrupts."""
_REMARKS = ("-fsave-optimization-record", "-foptimization-record-passes=inline")
"""Clang says beside each object what it inlined and why; of all passes, it would be far more."""
_OPTIMISE = "-O2"  # what the user gets who sets nothing: a build without it is no base
_LINK = ("-Wl,--build-id",)
_FIRST_TO_READ_2, _FIRST_TO_READ_3 = 12, 16
_FOR_BOLT = ("-Wl,--emit-relocs",)
_SECTIONS, _BY_LLD = ("-ffunction-sections",), ("-fuse-ld=lld",)
_BLOCK_MAP = ("-fbasic-block-address-map", *_SECTIONS)
_LAY_OUT = "-fbasic-block-sections=list="
_BLOCK_MAP_LINKED = (*_BY_LLD, "-Wl,--lto-basic-block-address-map")
"""Without LTO, lld passes over what is for LTO."""
_COUNT, _USE_COUNTS = "-fprofile-generate", "-fprofile-use"


@dataclass(frozen=True, slots=True)
class WantedFlags:
    """What the builds of a loop are for."""

    compiler: str = COMPILERS[0]
    """Of `COMPILERS`."""
    bolt: bool = False
    """What is linked is to be laid out anew."""
    propeller: bool = False
    """The same by the compiler, which is told of the blocks that it made."""
    startup: bool = False
    """The linker orders functions by the program's start."""
    probes: bool = False
    """Profiles are of pseudo probes."""
    unrelaxed: bool = False
    """These can only be had in code that the linker leaves as it is: of what is recorded alone."""
    frame_pointers: bool = False
    """Hardware records call chains."""
    training: tuple[str, ...] = ()
    """What else the compiler is given where a build is only recorded, behind all other flags."""

    copy_of: Path | None = None
    """The working directory is a copy of this one, whose paths are to be in the code."""
    use: tuple[str, ...] = ()
    """What else where the profile is used, behind all other flags."""
    counts: Path | None = None
    """Where the program itself counts, in place of samples: the directory of its counts."""

    @property
    def only_recorded(self) -> tuple[str, ...]:
        """Flags of the recorded build alone; with none, the plain build is recorded."""
        frames = FRAME_POINTERS if self.frame_pointers else ()
        return (*frames, *self.counting, *self.training)

    @property
    def counting(self) -> tuple[str, ...]:
        """What compiler and linker are given where the program counts (UsersManual.rst)."""
        return () if self.counts is None else (f"{_COUNT}={self.counts.resolve()}",)


@dataclass(frozen=True, slots=True)
class BuildFlags:
    """What one build is given."""

    compile: tuple[str, ...]
    link: tuple[str, ...]

    def settings(self, environment: Mapping[str, str]) -> dict[str, str]:
        """CFLAGS, CXXFLAGS and LDFLAGS, the user's own first."""
        base = {name: environment.get(name, _OPTIMISE) for name in ("CFLAGS", "CXXFLAGS")}
        compiling = {name: " ".join((text, *self.compile)) for name, text in base.items()}
        linking = " ".join((environment.get("LDFLAGS", ""), *self.link)).strip()
        return {**compiling, "LDFLAGS": linking}

    @property
    def asks_for_probes(self) -> bool:
        """Whether what is built is to have pseudo probes."""
        return PROBES[0] in self.compile

    @property
    def asks_for_block_map(self) -> bool:
        """Whether it is to tell of its blocks."""
        return _BLOCK_MAP[0] in self.compile

    def cache_settings(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The variable that has ccache look into files which it takes for mere names of flags.

        It knows profiles for what they are, but no list of blocks (4.7, its newest in Debian 12).
        """
        lists = [flag.removeprefix(_LAY_OUT) for flag in self.compile if flag.startswith(_LAY_OUT)]
        name = "CCACHE_EXTRAFILES"
        own = filter(None, (environment.get(name),))
        return {name: os.pathsep.join((*own, *lists))} if lists else {}


def config_file(flags: BuildFlags, environment: Mapping[str, str]) -> str:
    """Text of a configuration file of clang, which `--config=FILE` reads (UsersManual.rst).

    Flags of the command win over those in it. What users set themselves is left to them.

    >>> flags = BuildFlags(("-g",), ("-fuse-ld=lld",))
    >>> [config_file(flags, each).split() for each in ({}, {"CFLAGS": "-O3"})]
    [['-O2', '-g', '-fuse-ld=lld'], ['-g', '-fuse-ld=lld']]
    """
    optimise = () if {"CFLAGS", "CXXFLAGS"} & environment.keys() else (_OPTIMISE,)
    return "".join(f"{shlex.quote(each)}\n" for each in (*optimise, *flags.compile, *flags.link))


def plain_flags(wanted: WantedFlags) -> BuildFlags:
    """Of the build without a profile."""
    return BuildFlags(_unprofiled(wanted), _linked(wanted))


def base_flags(wanted: WantedFlags) -> BuildFlags:
    """Of what the others are measured against: nothing of ours is in its code.

    Probes alone, and the names that they need, change what is inlined and how.
    """
    return plain_flags(replace(wanted, probes=False, bolt=False, propeller=False, startup=False))


def training_flags(wanted: WantedFlags) -> BuildFlags:
    """Of the build that is recorded for the compiler."""
    linked = (*_linked(wanted), *wanted.counting)
    kept = KEPT_CALLS if wanted.probes and not wanted.unrelaxed else ()
    return BuildFlags((*RECORD_FLAGS, *_unprofiled(wanted), *kept, *wanted.only_recorded), linked)


def profile_flags(profile: Path, wanted: WantedFlags) -> BuildFlags:
    """Of the build that uses a profile; builds run anywhere, so its path is absolute."""
    option = _USE_COUNTS if wanted.counts else _COMPILERS[wanted.compiler].use_profile
    use = f"{option}={profile.resolve()}"
    over = OVERWRITTEN if wanted.probes else ()
    dropped = UNPROBED if wanted.probes and (wanted.propeller or wanted.unrelaxed) else ()
    return BuildFlags((*_found(wanted), use, *over, *dropped, *wanted.use), _linked(wanted))


def with_remarks(flags: BuildFlags) -> BuildFlags:
    """The same, and the compiler says what it inlined; nothing changes in the code."""
    return BuildFlags((*flags.compile, *_REMARKS), flags.link)


def layout_flags(flags: BuildFlags, clusters: Path, order: Path) -> BuildFlags:
    """Of the build that lays out the blocks of another one, which had these flags."""
    blocks = clusters.resolve()
    return BuildFlags(
        (*flags.compile, f"{_LAY_OUT}{blocks}"),
        (
            *flags.link,
            f"-Wl,--lto-basic-block-sections={blocks}",
            *_ordered_by(order),
        ),
    )


def order_flags(flags: BuildFlags, order: Path) -> BuildFlags:
    """Of the build whose functions the linker puts in an order, which had these flags."""
    return BuildFlags(flags.compile, (*flags.link, *_ordered_by(order)))


def _ordered_by(order: Path) -> tuple[str, ...]:
    return ("-Wl,--no-warn-symbol-ordering", f"-Wl,--symbol-ordering-file={order.resolve()}")


def _unprofiled(wanted: WantedFlags) -> tuple[str, ...]:
    return (*_found(wanted), *(UNRELAXED if wanted.probes and wanted.unrelaxed else ()))


def _found(wanted: WantedFlags) -> tuple[str, ...]:
    return (
        *_COMPILERS[wanted.compiler].debug_info,
        *(PROBES if wanted.probes else ()),
        *(_COMPILERS[wanted.compiler].before_bolt if wanted.bolt else ()),
        *(_BLOCK_MAP if wanted.propeller else ()),
        *(_SECTIONS if wanted.startup else ()),
        *(_paths_of(wanted.copy_of) if wanted.copy_of is not None else ()),
    )


def _paths_of(original: Path) -> tuple[str, ...]:
    """So that static functions have the same names as there: with probes, clang adds a hash.

    It is of the source's path, after this map (clang/lib/CodeGen/CodeGenModule.cpp,
    UniqueInternalLinkageNames).
    """
    return (f"-fmacro-prefix-map={Path.cwd()}={original.absolute()}",)


def _linked(wanted: WantedFlags) -> tuple[str, ...]:
    relocations = _FOR_BOLT if wanted.bolt else ()
    by_lld = _BLOCK_MAP_LINKED if wanted.propeller else _BY_LLD if wanted.startup else ()
    return (*_LINK, *relocations, *by_lld)


def afdo_version(environment: Mapping[str, str]) -> Literal["1", "2", "3"]:
    """The version of its profile that the GCC of an environment reads, see `AfdoOutput`."""
    command = [*environment.get("CC", "gcc").split(), "-dumpversion"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:  # there is none: the build finds its own
        return "2"
    major = said.partition(".")[0].strip()
    if not major.isdecimal():
        return "2"
    if int(major) < _FIRST_TO_READ_2:
        return "1"
    return "3" if int(major) >= _FIRST_TO_READ_3 else "2"
