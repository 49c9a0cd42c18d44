"""Encodes .pseudo_probe and .pseudo_probe_desc, and asks llvm-profgen what a program's hold."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

SENTINEL, HAS_DISCRIMINATOR, IS_DELTA = 2, 4, 0x80


def uleb(number: int) -> bytes:
    """An unsigned number in LEB128."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def sleb(number: int) -> bytes:
    """A signed number in LEB128."""
    out = bytearray()
    while not -0x40 <= number < 0x40:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number & 0x7F])


@dataclass(frozen=True)
class Probe:
    """One probe."""

    index: int
    address: int
    kind: int = 0
    attributes: int = 0
    discriminator: int = 0


@dataclass(frozen=True)
class Function:
    """A function with its probes, and what was inlined into it, by call probe."""

    guid: int
    probes: Sequence[Probe]
    inlined: Sequence[tuple[int, Function]] = field(default_factory=tuple)


def descriptor(guid: int, checksum: int, name: bytes) -> bytes:
    """One function's descriptor."""
    return guid.to_bytes(8, "little") + checksum.to_bytes(8, "little") + uleb(len(name)) + name


class Encoder:
    """Writes records; `address` is the running one."""

    def __init__(self) -> None:
        self.data = b""
        self.address = 0

    def record(
        self, function: Function, start: int, *, split: int | None = None, is_absolute: bool = False
    ) -> None:
        """One function's code that starts at an address.

        `split`: GUID of the symbol there, if it is not the function's own. `is_absolute`: as
        compilers wrote it before the code's symbol told where it starts.
        """
        self.address = start
        self._first = is_absolute
        self._node(function, b"" if split is None else b"\0\x20" + split.to_bytes(8, "little"))

    def _node(self, function: Function, sentinel: bytes = b"") -> None:
        self.data += function.guid.to_bytes(8, "little")
        self.data += uleb(len(function.probes) + (sentinel != b"")) + uleb(len(function.inlined))
        self.data += sentinel
        for probe in function.probes:
            self.data += self._probe(probe)
        for site, callee in function.inlined:
            self.data += uleb(site)
            self._node(callee)

    def _probe(self, probe: Probe) -> bytes:
        attributes = probe.attributes & 1 | HAS_DISCRIMINATOR * (probe.discriminator > 0)
        packed = probe.kind | attributes << 4
        if self._first:
            place = probe.address.to_bytes(8, "little")
        else:
            packed |= IS_DELTA
            place = sleb(probe.address - self.address)
        self.address, self._first = probe.address, False
        discriminator = uleb(probe.discriminator) if probe.discriminator else b""
        return uleb(probe.index) + bytes([packed]) + place + discriminator


Shown = dict[int, list[str]]
"""Probes of each address, each as `lbr2pgo dump probes` writes it."""

_KINDS = {"Block": "block", "IndirectCall": "indirect call", "DirectCall": "direct call"}
_PROBE = re.compile(
    r" \[Probe\]:\tFUNC: (.*) Index: (\d+)  (?:Discriminator: (\d+)  )?Type: (\w+)  "
    r"(?:Inlined: @ (.*))?"
)


def shown_by_llvm(profgen: str, binary: Path) -> tuple[Shown, set[tuple[str, int, int]]]:
    """What llvm-profgen shows: probes at instructions; names, GUIDs and checksums of functions."""
    done = subprocess.run(
        [profgen, "--show-pseudo-probe", "--show-disassembly-only", f"--binary={binary}",
         "--output=/dev/null"], capture_output=True, text=True, check=True,
    )  # fmt: skip
    head, _, code = done.stdout.partition("\nDisassembly of ")
    functions = {
        (name, int(guid), int(checksum))
        for guid, name, checksum in re.findall(r"GUID: (\d+) Name: (.*)\nHash: (\d+)", head)
    }
    shown: Shown = {}
    waiting: list[str] = []
    for line in code.splitlines():
        probe = _PROBE.fullmatch(line)
        if probe is not None:
            waiting.append(_rewritten(*probe.groups()))
        elif waiting:
            address = int(line.split(":")[0], 16)
            assert shown.setdefault(address, waiting) == waiting  # a symbol's alias shows it again
            waiting = []
    return shown, functions


def _rewritten(
    name: str, index: str, discriminator: str | None, kind: str, inlined: str | None
) -> str:
    place = f"{name}:{index}" + (f".{discriminator}" if discriminator else "")
    return f"{place}, {_KINDS[kind]}" + (f", inlined at {inlined}" if inlined else "")


def shown_by_dump(text: str) -> tuple[Shown, set[tuple[str, int, int]]]:
    """What `lbr2pgo dump probes` printed, alike."""
    functions = {
        (name, int(guid), int(checksum))
        for name, guid, checksum in re.findall(r"(?m)^(.*): GUID (\d+), checksum (\d+)", text)
    }
    shown: Shown = {}
    address = -1
    for line in text.splitlines():
        if line.startswith("    "):
            shown[address].append(line.strip())
        elif line.startswith("0x"):
            address = int(line.split()[0], 16)
            shown[address] = []
    return shown, functions
