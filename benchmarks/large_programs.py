"""The programs of `large.py`: their sources, how they are built, and what they are run with."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fresh_programs import Package
from programs_met import MET
from which_profile import call

PACKAGES = (
    Package("poppler", "22.12.0-2+deb12u2",
            "d9aa9cacdfbd0f8e98fc2b3bb008e645597ed480685757c3e7bc74b4278d15c0", "apt"),
    Package("rocksdb", "7.8.3-2",
            "b85408a374770897332bf15e51620a5f35720dd416a4749e3899057f9cfaf84d", "apt"),
    Package("llvm-toolchain-14", "1:14.0.6-12",
            "d9bce5f42381d781e273c724db1ab0acd66259bf2782b79891664dbf1953d22c", "apt"),
    # Only inputs are from these.
    *(each for each in MET.packages if each.name in ("cmarkgfm", "pycosat")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Large:
    """What is built, what it learns from, and what it is judged by besides."""

    name: str
    target: str
    """What Ninja makes."""
    options: Sequence[str]
    """Of CMake."""
    train: str
    judged: Sequence[str]
    """Patterns of bash; $S are the sources."""
    source: str = ""
    """Below the sources, if not of its name."""
    driver: str | None = None
    """In benchmarks/programs/large: what makes a program of a library."""
    libraries: str = ""
    """What Debian has built of it, and what that needs, as bash expands it."""
    generated: Sequence[str] = ()
    """Targets of headers that are to be generated."""


_PASSES = "'function(sroa,early-cse<memssa>,instcombine,gvn,simplifycfg)'"
_OFF = ["GTK_TESTS", "QT5_TESTS", "QT6_TESTS", "CPP_TESTS", "MANUAL_TESTS", "SHARED_LIBS"]
PROGRAMS = (
    Large(
        "poppler", "pdftoppm",
        [*(f"-DBUILD_{each}=OFF" for each in _OFF), "-DENABLE_CPP=OFF", "-DENABLE_GLIB=OFF",
         "-DENABLE_QT5=OFF", "-DENABLE_QT6=OFF", "-DENABLE_LIBCURL=OFF"],
        "-r 40 ../shapes.pdf", ["-r 30 ../lines.pdf", "-r 40 ../areas.pdf"],
    ),
    Large(
        "rocksdb", "rocksdb",
        [*(f"-DWITH_{each}=ON" for each in ("BZ2", "LZ4", "SNAPPY", "ZLIB", "ZSTD")),
         "-DCMAKE_BUILD_TYPE=None", "-DROCKSDB_BUILD_SHARED=OFF", "-DPORTABLE=ON",
         "-DFAIL_ON_WARNINGS=OFF"],
        "1 20000 100 20000 500", ["2 30000 20 3000 100", "3 3000 400 30000 2000"],
        driver="store.cc", libraries="/usr/lib/x86_64-linux-gnu/librocksdb.a -lsnappy -lz -lbz2 "
        "-llz4 -lzstd -lgflags -ldl",
    ),
    Large(
        "llvm", "opt",
        ["-DLLVM_TABLEGEN=/usr/lib/llvm-14/bin/llvm-tblgen", "-DLLVM_TARGETS_TO_BUILD=X86",
         "-DLLVM_ENABLE_RTTI=ON",
         *(f"-DLLVM_INCLUDE_{each}=OFF" for each in ["TESTS", "BENCHMARKS", "EXAMPLES", "UTILS"])],
        f"{_PASSES} ../inlines.ll",
        [f"{_PASSES} ../picosat.ll", f"{_PASSES} ../table.ll ../node.ll"],
        source="llvm-toolchain-14/llvm", driver="passes.cc", libraries="-L/usr/lib/llvm-14/lib "
        "$(llvm-config-14 --link-static --libs passes irreader) -lz -ldl -lm -ltinfo",
        generated=["intrinsics_gen"],
    ),
)  # fmt: skip


def make_inputs() -> None:
    """What no package has, in this folder."""
    compile_inputs()
    Path("shapes.pdf").write_bytes(drawing(1, 400, ["f*", "f", "B", "S"]))
    Path("lines.pdf").write_bytes(drawing(2, 300, ["S", "s"]))
    Path("areas.pdf").write_bytes(drawing(3, 250, ["f", "f*"]))


_CMARK = Path("sources/cmarkgfm/third_party/cmark")
_COMPILED = (
    _CMARK / "src/inlines.c", _CMARK / "src/node.c", _CMARK / "extensions/table.c",
    Path("sources/pycosat/picosat.c"),
)  # fmt: skip


def compile_inputs() -> None:
    """IR that nothing has optimized yet."""
    told = "-O1", "-Xclang", "-disable-llvm-passes", "-w", "-S", "-emit-llvm"
    folders = f"-I{_CMARK}/src", f"-I{_CMARK}/extensions", "-Isources/cmarkgfm/generated/unix"
    for source in _COMPILED:
        out = Path(source.stem).with_suffix(".ll")
        call("clang-14", *told, "-DCMARK_GFM_STATIC_DEFINE", *folders, source, "-o", out)


def drawing(seed: int, shapes: int, painted: Sequence[str]) -> bytes:
    """A page with shapes of straight lines and curves, as PDF."""
    chance = random.Random(seed)
    lines = []
    for number in range(shapes):
        colour = " ".join(f"{chance.random():.3f}" for _ in range(3))
        lines.append(f"q {colour} rg {colour} RG {chance.random() * 4:.2f} w")
        lines.append(f"[{chance.randint(1, 9)} {chance.randint(1, 9)}] 0 d" if number % 3 else "")
        lines.append(f"{_points(chance, 1)} m")
        for _ in range(chance.randint(3, 12)):
            kind, points = ("c", 3) if chance.random() < 0.6 else ("l", 1)
            lines.append(f"{_points(chance, points)} {kind}")
        lines.append(f"h {chance.choice(painted)} Q")
    drawn = "\n".join(lines).encode()
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
    )
    out, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(b"%010d 00000 n \n" % len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    size = len(objects) + 1
    listed = b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, b"".join(places))
    trailer = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(out))
    return out + listed + trailer


def _points(chance: random.Random, number: int) -> str:
    places = ((chance.random() * 600, chance.random() * 800) for _ in range(number))
    return " ".join(f"{x:.1f} {y:.1f}" for x, y in places)
