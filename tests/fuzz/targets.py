"""What each fuzz target does with bytes, and where its seeds come from.

A target gives bytes to one reader as the commands would, and lets every exception but the
product's own out. To add one: write a function, and add a row to `TARGETS`.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from lbr2pgo.counting import count
from lbr2pgo.dumping import profile as written
from lbr2pgo.errors import Lbr2pgoError
from lbr2pgo.program.debug_info import DebugInfo
from lbr2pgo.program.image import Image
from lbr2pgo.program.program import Program
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import Source

REPOSITORY = Path(__file__).parents[2]
TESTBINS = REPOSITORY / "testbins"
RECORDINGS = TESTBINS / "recordings"
CORPUS = REPOSITORY.parent / "shared" / "corpus"
BINARY = TESTBINS / "x86-64" / "interp.pie"

_ADDRESSES = 64
"""How many addresses of a program are asked for their source lines."""


@cache
def _file() -> Path:
    """One file for all inputs of this process, in memory where that is possible."""
    shared = Path("/dev/shm")
    folder = shared if os.access(shared, os.W_OK) else None
    descriptor, name = tempfile.mkstemp(prefix="lbr2pgo-fuzz-", dir=folder)
    os.close(descriptor)
    atexit.register(os.unlink, name)
    return Path(name)


@cache
def _program() -> Program:
    return Program.open(BINARY)


def recording(data: bytes) -> None:
    """Any recording: recognise, read, and count it."""
    _file().write_bytes(data)
    program = _program()
    source: Source = open_source(_file())
    count(source, program.image.layout, None, program.address_of)
    source.health()


def profile(data: bytes) -> None:
    """Any written profile: read it, and write it as text."""
    _file().write_bytes(data)
    for _ in written.lines(_file()):
        pass


def program(data: bytes) -> None:
    """A program with DWARF: its functions, and the frames of some of its code."""
    _file().write_bytes(data)
    image = Image.open(_file())
    opened = Program(image)
    starts = opened.functions.start[:_ADDRESSES]
    opened.instructions_for(starts)
    debug = DebugInfo.open(image)
    if debug.present:
        debug.functions()
        debug.frames(np.asarray(starts, dtype=np.uint64))


@dataclass(frozen=True, slots=True)
class Target:
    """One format: how it is read, and files of it."""

    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    longest: int = 1 << 16
    """Bytes of the largest input worth trying."""

    def __call__(self, data: bytes) -> None:
        """Read bytes; the product's own errors are an answer."""
        try:
            self.run(data)
        except Lbr2pgoError:
            return


def _files(*patterns: str) -> Callable[[], Iterable[bytes]]:
    def read() -> Iterable[bytes]:
        for folder in (TESTBINS, CORPUS):
            for pattern in patterns:
                for path in sorted(folder.glob(pattern)):
                    yield path.read_bytes()[: 1 << 18]

    return read


@cache
def _converted(name: str) -> bytes:
    from lbr2pgo.pipeline import ConvertOptions, convert

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        convert(
            ConvertOptions(
                (RECORDINGS / "x86-64-interp.pie.perf.data",), BINARY, out / "llvm",
                llvm_format="extbinary", fdata=out / "fdata", preaggregated=out / "preaggregated",
                counts=out / "counts.npz",
            )
        )  # fmt: skip
        return (out / name).read_bytes()


def _outputs(*names: str) -> Callable[[], Iterable[bytes]]:
    return lambda: [_converted(name) for name in names]


def _text(*lines: str) -> Callable[[], Iterable[bytes]]:
    return lambda: ["".join(f"{line}\n" for line in lines).encode()]


TARGETS = {
    "perf_data": Target(recording, _files("recordings/*.data", "quipper/*.data"), 1 << 18),
    "perf_script": Target(recording, _files("llvm-profgen/*.perfscript")),
    "preaggregated": Target(recording, _outputs("preaggregated")),
    "saved_counts": Target(recording, _outputs("counts.npz")),
    "uprof": Target(
        recording,
        _text(
            "AMD uProf", "BRANCH MISPREDICTION REPORT", "Function,Module,Source File,Line,Count",
            '"main","a.out","a.c",3,10', "From,To,Mispredict", "0x1000,0x1010,1",
        ),
    ),
    "registers": Target(
        recording,
        _text(
            "cpu 0", "MSR 1C9 0000000000000003", "MSR 680 0000000000401000",
            "MSR 6C0 0000000000401010", "BRBINF0_EL1=0x0000000000002503",
            "BRBSRC0_EL1=0x0000000000401000", "BRBTGT0_EL1=0x0000000000401010",
        ),
    ),
    "program": Target(program, _files("x86-64/*.pie", "aarch64/*.pie"), 1 << 18),
    "extbinary": Target(profile, _outputs("llvm")),
    "fdata": Target(profile, _outputs("fdata")),
    "sample_text": Target(profile, _files("llvm-profgen/*.expected.prof")),
}  # fmt: skip
