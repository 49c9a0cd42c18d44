"""The programs of `large.py`: their sources, how they are built, and what they are run with."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fresh_programs import PACKAGES as FRESH
from fresh_programs import Package
from which_profile import call

PACKAGES = (
    Package("binaryen", "108-1",
            "7fea5013da7f98daeeb6a0a60333e8aa917bcb0b1b418ba8531fe710d09041f2", "apt"),
    Package("poppler", "22.12.0-2+deb12u2",
            "d9aa9cacdfbd0f8e98fc2b3bb008e645597ed480685757c3e7bc74b4278d15c0", "apt"),
    Package("rocksdb", "7.8.3-2",
            "b85408a374770897332bf15e51620a5f35720dd416a4749e3899057f9cfaf84d", "apt"),
    Package("z3", "4.8.12-3.1",
            "e3aaefde68b839299cbc988178529535e66048398f7d083b40c69fe0da55f8b7", "apt"),
    Package("llvm-toolchain-14", "1:14.0.6-12",
            "d9bce5f42381d781e273c724db1ab0acd66259bf2782b79891664dbf1953d22c", "apt"),
    # Only inputs are from these.
    *(each for each in FRESH if each.name in ("cmarkgfm", "pycosat")),
    Package("box2d-wasm", "7.0.0",
            "8646a2a9d9532705623e65c54889dcca369f41511cee84e0312fc09f9d682d7f", "npm"),
    Package("onigasm", "2.2.5",
            "e651cb278c5f14113637e2da0d6e5531d71a90d51410464334cbfb889fa71434", "npm"),
    Package("yoga-wasm-web", "0.3.3",
            "43e9926408e55116e267f2e85d19f8df3e492e8616cfe0e206843ffc14612d67", "npm"),
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
    environment: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    """Below the sources, if not of its name."""
    driver: str | None = None
    """In benchmarks/programs/large: what makes a program of a library."""
    libraries: str = ""
    """What Debian has built of it, and what that needs, as bash expands it."""
    generated: Sequence[str] = ()
    """Targets of headers that are to be generated."""


_WASM = "-all -O2 -o /dev/stdout"
_PASSES = "'function(sroa,early-cse<memssa>,instcombine,gvn,simplifycfg)'"
_OFF = "GTK_TESTS QT5_TESTS QT6_TESTS CPP_TESTS MANUAL_TESTS SHARED_LIBS".split()
PROGRAMS = (
    Large(
        "binaryen", "wasm-opt",
        ["-DBUILD_TESTS=OFF", "-DBUILD_STATIC_LIB=ON", "-DENABLE_WERROR=OFF"],
        f"{_WASM} $S/box2d-wasm/dist/es/Box2D.wasm",
        [f"{_WASM} $S/yoga-wasm-web/dist/yoga.wasm", f"{_WASM} $S/onigasm/lib/onigasm.wasm"],
        {"BINARYEN_CORES": "1"},
    ),
    Large(
        "poppler", "pdftoppm",
        [*(f"-DBUILD_{each}=OFF" for each in _OFF), "-DENABLE_CPP=OFF", "-DENABLE_GLIB=OFF",
         "-DENABLE_QT5=OFF", "-DENABLE_QT6=OFF", "-DENABLE_LIBCURL=OFF"],
        "-r 40 ../shapes.pdf", ["-r 30 ../lines.pdf", "-r 40 ../areas.pdf"],
    ),
    Large(
        "rocksdb", "rocksdb",
        [*(f"-DWITH_{each}=ON" for each in ("BZ2", "LZ4", "SNAPPY", "ZLIB", "ZSTD")),
         "-DCMAKE_BUILD_TYPE=None", "-DROCKSDB_BUILD_SHARED=OFF", "-DPORTABLE=ON", "-DFAIL_ON_WARNINGS=OFF"],
        "1 20000 100 20000 500", ["2 30000 20 3000 100", "3 3000 400 30000 2000"],
        driver="store.cc", libraries="/usr/lib/x86_64-linux-gnu/librocksdb.a -lsnappy -lz -lbz2 "
        "-llz4 -lzstd -lgflags -ldl",
    ),
    Large(
        "llvm", "opt",
        ["-DLLVM_TABLEGEN=/usr/lib/llvm-14/bin/llvm-tblgen", "-DLLVM_TARGETS_TO_BUILD=X86",
         "-DLLVM_ENABLE_RTTI=ON",
         *(f"-DLLVM_INCLUDE_{each}=OFF" for each in "TESTS BENCHMARKS EXAMPLES UTILS".split())],
        f"{_PASSES} ../inlines.ll", [f"{_PASSES} ../picosat.ll", f"{_PASSES} ../table.ll ../node.ll"],
        source="llvm-toolchain-14/llvm", driver="passes.cc", libraries="-L/usr/lib/llvm-14/lib "
        "$(llvm-config-14 --link-static --libs passes irreader) -lz -ldl -lm -ltinfo",
        generated=["intrinsics_gen"],
    ),
    Large(
        "z3", "z3", ["-DZ3_BUILD_LIBZ3_SHARED=OFF", "-DZ3_BUILD_PYTHON_BINDINGS=OFF"],
        "../sums.smt2", ["../products.smt2", "../arrays.smt2"],
    ),
)  # fmt: skip


def make_inputs() -> None:
    """What no package has, in this folder."""
    for name, lines in (("sums", sums(24)), ("products", products(8)), ("arrays", arrays(40))):
        Path(f"{name}.smt2").write_text("".join(f"{line}\n" for line in lines))
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
            lines.append(f"{_points(chance, 3)} c" if chance.random() < 0.6 else f"{_points(chance, 1)} l")
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
    return " ".join(f"{chance.random() * 600:.1f} {chance.random() * 800:.1f}" for _ in range(number))


def sums(size: int) -> Iterator[str]:
    """Integers whose sums are bounded, and some of which differ."""
    chance = random.Random(size)
    yield "(set-logic QF_LIA)"
    for number in range(size):
        yield f"(declare-const x{number} Int)\n(assert (<= 0 x{number} 99))"
    for _ in range(3 * size):
        some = " ".join(f"(* {chance.randint(-9, 9)} x{chance.randrange(size)})" for _ in range(5))
        one, other = chance.sample(range(size), 2)
        yield f"(assert (or (<= (+ {some}) {chance.randint(-50, 400)}) (< x{one} x{other})))"
    yield f"(assert (distinct {' '.join(f'x{number}' for number in range(size))}))\n(check-sat)"


def products(bits: int) -> Iterator[str]:
    """That a product of three factors does not depend on their order."""
    yield "(set-logic QF_BV)"
    for name in "abc":
        yield f"(declare-const {name} (_ BitVec {bits}))"
    yield "(assert (distinct (bvmul a (bvmul b c)) (bvmul (bvmul c a) b)))\n(check-sat)"


def arrays(size: int) -> Iterator[str]:
    """That stores at different places may be swapped."""
    chance = random.Random(size)
    yield "(set-logic QF_AUFLIA)\n(declare-const a (Array Int Int))"
    for number in range(size):
        yield f"(declare-const i{number} Int)\n(declare-const v{number} Int)"
    order = list(range(size))
    stored = []
    for _ in range(2):
        text = "a"
        for number in order:
            text = f"(store {text} i{number} v{number})"
        stored.append(text)
        chance.shuffle(order)
    yield f"(assert (distinct {' '.join(f'i{number}' for number in range(size))}))"
    yield f"(assert (not (= {' '.join(stored)})))\n(check-sat)"
