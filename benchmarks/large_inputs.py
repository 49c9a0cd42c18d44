"""Input of the programs of `large.py`, made from their packages or of nothing but a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from which_profile import call


def make_inputs() -> None:
    """What no package has, in this folder."""
    compile_inputs()
    preprocess_inputs()
    Path("shapes.pdf").write_bytes(drawing(1, 400, ["f*", "f", "B", "S"]))
    Path("lines.pdf").write_bytes(drawing(2, 300, ["S", "s"]))
    Path("areas.pdf").write_bytes(drawing(3, 250, ["f", "f*"]))
    Path("nests.mlir").write_text(products(1, 300))
    Path("stencils.mlir").write_text(stencils(2, 500))


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
        call("llvm-as-14", out)


_ROCKSDB = Path("sources/rocksdb")
_PREPROCESSED = (
    (_ROCKSDB / "util/thread_local.cc", "ii"), (_ROCKSDB / "util/string_util.cc", "ii"),
    (Path("sources/pycosat/picosat.c"), "i"),
)  # fmt: skip


def preprocess_inputs() -> None:
    """C++ and C with all headers in it."""
    named = "-DOS_LINUX", "-DROCKSDB_PLATFORM_POSIX", "-DROCKSDB_LIB_IO_POSIX"
    folders = f"-I{_ROCKSDB}/include", f"-I{_ROCKSDB}"
    for source, suffix in _PREPROCESSED:
        out = Path(source.stem).with_suffix(f".{suffix}")
        standard = ("-std=c++17",) if suffix == "ii" else ()
        call("clang-14", "-E", "-w", *standard, *named, *folders, source, "-o", out)


def products(seed: int, functions: int) -> str:
    """Products of matrices, as MLIR."""
    chance = random.Random(seed)
    texts = []
    for number in range(functions):
        rows, columns, inner = (chance.randint(8, 64) for _ in range(3))
        left, right, out = (
            f"memref<{a}x{b}xf32>" for a, b in ((rows, inner), (inner, columns), (rows, columns))
        )
        texts.append(f"""\
func @product{number}(%left: {left}, %right: {right}, %out: {out}) {{
  affine.for %row = 0 to {rows} {{
    affine.for %column = 0 to {columns} {{
      affine.for %at = 0 to {inner} {{
        %a = affine.load %left[%row, %at] : {left}
        %b = affine.load %right[%at, %column] : {right}
        %c = affine.load %out[%row, %column] : {out}
        %d = arith.mulf %a, %b : f32
        %e = arith.addf %c, %d : f32
        affine.store %e, %out[%row, %column] : {out}
      }}
    }}
  }}
  return
}}
""")
    return "".join(texts)


def stencils(seed: int, functions: int) -> str:
    """Sums over neighbours, as MLIR."""
    chance = random.Random(seed)
    texts = []
    for number in range(functions):
        size, reach = chance.randint(32, 256), chance.randint(1, 6)
        kind = f"memref<{size}xi32>"
        lines = [
            f"""\
    %v{at} = affine.load %in[%x + {at}] : {kind}
    %t{at} = arith.{chance.choice(("addi", "subi", "muli", "xori"))} %s{at}, %v{at} : i32
    %u{at} = arith.cmpi slt, %t{at}, %v{at} : i32
    %s{at + 1} = select %u{at}, %t{at}, %v{at} : i32
"""
            for at in range(reach)
        ]
        texts.append(f"""\
func @stencil{number}(%in: {kind}, %out: {kind}) {{
  %zero = arith.constant {chance.randint(0, 9)} : i32
  affine.for %x = 0 to {size - reach} {{
    %s0 = arith.addi %zero, %zero : i32
{"".join(lines)}    affine.store %s{reach}, %out[%x] : {kind}
  }}
  return
}}
""")
    return "".join(texts)


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
