"""Files that fuzzing starts from, made by hand, or by a compiler if it is there."""

from __future__ import annotations

import gzip
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from builders import jit, kernels
from builders import perf_data as build
from builders.perf_data import Event, Sample
from builders.protobuf import otlp, pprof
from seeds import BINARY, TESTBINS

SOURCE = TESTBINS / "src" / "interp.c"
_UNWINDING_RESULT, _META_INFO, _FILE = 32776, 128, 129  # simpleperf: record.h, record_file_format.h


def processor_samples() -> Iterable[bytes]:
    """Profiles of pprof's, packed and plain, and of OpenTelemetry's, alone and in a row."""
    samples, path = [(0x1100, 3), (0x1104, 2)], str(BINARY)
    packed = pprof(samples, path=path)
    yield packed
    yield gzip.decompress(packed)
    plain = otlp(samples, path=path)
    yield plain
    yield 2 * (len(plain).to_bytes(4, "big") + plain)


def jitdumps() -> Iterable[bytes]:
    """Code with lines that moves, and code in the place of other code."""
    at = jit.MEMORY
    told = jit.lines(at, [(at, 3, b"a.js"), (at + 2, 4, b"\xff")])
    first = jit.load(at, "loop", jit.LOOP, number=1)
    later = jit.load(at + 2, "f /opt/b.js:1:15", jit.OTHER, time=300, number=2)
    yield jit.header() + told + first + jit.move(at, at + 64, 5, 200, 1) + later


def perf_maps() -> Iterable[bytes]:
    """Lines as V8 and Java write them."""
    yield b"7E0000000000 5 JS:*inner /opt/a b/hot.js:1:15\n0x7e0000001000 0x110 int Hot.inner()\n"


def simpleperf() -> Iterable[bytes]:
    """perf.data with records and features of Android's."""
    event = Event(build.IP | build.TID | build.TIME | build.BRANCH_STACK)
    own = struct.pack("<IHH", _UNWINDING_RESULT, 0, 40) + bytes(32)
    mapped = build.mmap2(10, 0x200000, 0x4000, f"/data/app/base.apk!{BINARY}", b"", offset=0)
    samples = Sample(((0x202010, 0x202000, 0),) * 2, pid=10, tid=10).encode(event)
    meta = b"simpleperf_version\0" + b"1.build.7848450\0product_props\0Google:Pixel 8:husky\0"
    features = {_META_INFO: meta, _FILE: bytes(64)}
    yield build.file_form([event], mapped + (samples + own) * 4, features)


@cache
def _place() -> tempfile.TemporaryDirectory[str]:
    """Removed when the process ends."""
    return tempfile.TemporaryDirectory()


def _folder() -> Path:
    return Path(_place().name)


def modules() -> Iterable[bytes]:
    """Kernel modules, plain and with packed debug information."""
    if shutil.which("gcc"):
        for name, flags in (("plain.ko", ()), ("packed.ko", ("-gz=zlib",))):
            yield kernels.module(_folder() / name, *flags).read_bytes()


def windows_programs() -> Iterable[bytes]:
    """A program for MinGW."""
    target = _folder() / "program.exe"
    (_folder() / "main.c").write_text("int mainCRTStartup(void) { return 0; } void __main() {}")
    flags = ["-g", "-nostdlib", "-ffreestanding", "-Wl,-e,mainCRTStartup", "--ld-path=ld.lld-22"]
    target_flags = ["-target", "x86_64-w64-windows-gnu"]
    words = ["clang-22", *target_flags, *flags, "-o", target, _folder() / "main.c"]
    yield from _compiled(words, target)


@cache
def split_program() -> tuple[Path, Path] | None:
    """A program and the .dwo that holds its debug information; None without a compiler."""
    target = _folder() / "split"
    words = ["clang-22", "-O2", "-gsplit-dwarf", "-gdwarf-5", SOURCE, "-o", target]
    return (target, *_folder().glob("split-*.dwo")) if list(_compiled(words, target)) else None


def split_units() -> Iterable[bytes]:
    """That .dwo."""
    found = split_program()
    if found is not None:
        yield found[1].read_bytes()


def _compiled(words: list[object], target: Path) -> Iterable[bytes]:
    if not target.exists() and shutil.which(str(words[0])):
        subprocess.run([*map(str, words)], check=True, capture_output=True, cwd=target.parent)
    if target.exists():
        yield target.read_bytes()
