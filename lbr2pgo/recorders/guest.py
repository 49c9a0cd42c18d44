"""The program to emulate: which machine it is for, and the emulator and libraries that it needs."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.program.code import registry
from lbr2pgo.program.code.architecture import Architecture
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.errors import InputError, MissingToolError

_ELF_HEAD = struct.Struct("<4sBB10xHHI8xQ14xHH")
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_CLASS_64, _LITTLE_ENDIAN, _PT_INTERP = 2, 1, 3
_SCRIPT_LEVELS = 5
_PATH_LIMIT = 4096


EMULATOR_CURE = (
    "Install QEMU's user-mode emulators, 7.2 or newer, with plugins: on Debian 12 apt-get install "
    "qemu-user. Where the distribution's have none (Debian 13 builds them static), build QEMU with "
    "--enable-plugins and put it first in PATH."
)


@dataclass(frozen=True, slots=True)
class Emulated:
    """What emulation needs to know of an architecture."""

    libraries: str
    """Where Debian's cross packages put its loader and libraries."""
    package: str
    """The Debian package that holds them."""
    has_half_records: bool = False
    """Whether its branch recorder keeps one end of a branch to or from where it may not record."""


EMULATED = {
    "x86-64": Emulated("/usr/x86_64-linux-gnu", "libc6-amd64-cross"),
    "aarch64": Emulated("/usr/aarch64-linux-gnu", "libc6-arm64-cross", has_half_records=True),
    "riscv64": Emulated("/usr/riscv64-linux-gnu", "libc6-riscv64-cross"),
}
"""By name, the architectures whose branches the plugin knows (plugin/architecture.c)."""

EMULATORS = {name: f"qemu-{registry.named(name).uname[0]}" for name in EMULATED}
"""QEMU's user-mode emulators for them."""

SHADOWED = {b"__asan_init\0": "Address", b"__tsan_init\0": "Thread", b"__msan_init\0": "Memory"}
"""What runtimes define that keep shadow memory, terabytes that QEMU would have to fill, and which
(LLVM's compiler-rt, GCC's libsanitizer)."""

_CURE = f"The software LBR emulates programs for {', '.join(EMULATED)}."


@dataclass(frozen=True, slots=True)
class Guest:
    """How to run a command under emulation."""

    architecture: Architecture
    emulator: str
    sysroot: str | None
    """Where the guest's loader and libraries are, if not where the program expects them."""
    path: str
    """Of the ELF file that runs first: the program itself or a script's interpreter."""
    arguments: tuple[str, ...]
    """From argv[0] on."""

    def command(self, *options: str) -> list[str]:
        """The command line that emulates it, with these options of QEMU."""
        libraries = ["-L", self.sysroot] if self.sysroot else []
        path = f"./{self.path}" if self.path.startswith("-") else self.path
        named = ["-0", self.arguments[0], path]
        return [self.emulator, *libraries, *options, *named, *self.arguments[1:]]


def find_guest(
    command: tuple[str, ...], environment: Mapping[str, str] = os.environ, host: str | None = None
) -> Guest:
    """Resolve a command as a shell would.

    `host` is this machine as `uname -m` says it. Raises InputError if there is no such program or
    if it is for a machine that can't be emulated, MissingToolError if QEMU or the libraries of
    the guest's machine are not installed.
    """
    path, arguments = _through_scripts(_find_program(command[0], environment), command)
    machine, interpreter = _read_elf(path)
    architecture = registry.of_elf_machine(machine, where=path)
    if architecture.name not in EMULATED:
        raise InputError(
            f"the program is for {architecture.name}, which is not emulated",
            where=path,
            cure=_CURE,
        )
    emulator = _find_emulator(architecture, environment)
    foreign = (host or os.uname().machine) not in architecture.uname
    sysroot = _find_sysroot(architecture, interpreter, environment) if foreign else None
    return Guest(architecture, emulator, sysroot, path, arguments)


def refuse_shadow_memory(guest: Guest) -> None:
    """Raises InputError for a sanitised program that would take all of this machine's memory.

    Its symbols tell: a compiler has these names, too, but as data.
    """
    image = Image.open(Path(guest.path))
    tables = filter(None, map(image.section, (".symtab", ".dynsym")))
    for strings in (image.strings(table.link) for table in tables):
        for symbol, name in SHADOWED.items():
            if symbol in strings:
                raise InputError(
                    f"the program has {name}Sanitizer, whose shadow memory can't be emulated",
                    where=guest.path,
                    cure="Record it on hardware, or a build without it. "
                    "-fsanitize=undefined can be emulated.",
                )


def _find_program(name: str, environment: Mapping[str, str]) -> str:
    found = shutil.which(name, path=environment.get("PATH"))
    if found:
        return found
    if "/" in name and Path(name).exists():
        raise InputError(
            "not a program that may be executed", where=name, cure=f"Try chmod +x {name}."
        )
    raise InputError(
        f"there is no program {name}", cure="Give its path, or a name that PATH finds."
    )


def _through_scripts(path: str, command: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The ELF file behind a script, and its arguments as the kernel would set them."""
    arguments = command
    for _ in range(_SCRIPT_LEVELS):
        with _opened(path) as file:
            line = file.readline(_PATH_LIMIT)
        if not line.startswith(b"#!"):
            return path, arguments
        words = os.fsdecode(line[2:]).strip().split(None, 1)
        if not words:
            break
        arguments = (*words, path, *arguments[1:])
        path = words[0]
    raise InputError("the script names no interpreter that can be run", where=path)


def _opened(path: str):  # type: ignore[no-untyped-def]
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise InputError(
            f"the program can't be read: {error.strerror}",
            where=path,
            cure="The software LBR must read the program's ELF headers.",
        ) from error


def _read_elf(path: str) -> tuple[int, str | None]:
    """`e_machine`, and the program's dynamic loader if it has one."""
    with _opened(path) as file:
        head = file.read(_ELF_HEAD.size)
        if len(head) < _ELF_HEAD.size or not head.startswith(b"\x7fELF"):
            raise InputError("neither an ELF program nor a script", where=path)
        _, bits, order, _, machine, _, table, entry_size, count = _ELF_HEAD.unpack(head)
        if bits != _CLASS_64 or order != _LITTLE_ENDIAN:
            raise InputError(
                "not a 64-bit little-endian program",
                where=path,
                cure=_CURE,
            )
        if entry_size != _PROGRAM_HEADER.size:
            return machine, None
        file.seek(table)
        headers = file.read(count * entry_size)
        for at in range(0, len(headers) - entry_size + 1, entry_size):
            kind, _, offset, _, _, size, _, _ = _PROGRAM_HEADER.unpack_from(headers, at)
            if kind == _PT_INTERP:
                file.seek(offset)
                return machine, os.fsdecode(file.read(min(size, _PATH_LIMIT)).rstrip(b"\0"))
    return machine, None


def _find_emulator(architecture: Architecture, environment: Mapping[str, str]) -> str:
    name = EMULATORS[architecture.name]
    found = shutil.which(name, path=environment.get("PATH"))
    if found is None:
        raise MissingToolError(
            f"the software LBR needs {name}, and it is not installed", cure=EMULATOR_CURE
        )
    if _is_static(found):
        raise MissingToolError(
            "the software LBR needs a QEMU that loads plugins, and this one is a static program",
            where=found,
            cure=EMULATOR_CURE,
        )
    return found


def _is_static(path: str) -> bool:
    """Whether it is an ELF program without a dynamic loader; a wrapper script is none."""
    with _opened(path) as file:
        if not file.read(4).startswith(b"\x7fELF"):
            return False
    return _read_elf(path)[1] is None


def _find_sysroot(
    architecture: Architecture, interpreter: str | None, environment: Mapping[str, str]
) -> str | None:
    """QEMU's -L for a foreign program; `QEMU_LD_PREFIX` overrides the cross packages' place."""
    emulated = EMULATED[architecture.name]
    sysroot = environment.get("QEMU_LD_PREFIX") or emulated.libraries
    if interpreter is None or Path(sysroot + interpreter).exists():
        return sysroot if Path(sysroot).exists() else None
    if Path(interpreter).exists():
        return None
    install = f"Install the libraries (Debian: apt-get install {emulated.package}), or name"
    raise MissingToolError(
        f"the program needs {interpreter} of {architecture.name}, and it is not in {sysroot}",
        # Where there are libraries, the program is for others: another C library's.
        cure=f"{'Name' if Path(sysroot).exists() else install} the place of its own in "
        "QEMU_LD_PREFIX, or link it with -static.",
    )
