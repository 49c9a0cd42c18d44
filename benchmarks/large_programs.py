"""The programs of `large.py`: their sources, how they are built, and what they are run with.

Input that no package has is made by `large_inputs.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fresh_programs import Package
from programs_met import MET

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
    kept: Sequence[str] = ()
    """Objects that stay as Debian compiled them, for others need what clang does not write there:
    linked beside their library's own, LLVM's options are there twice, and nothing starts."""


_LLVM = [
    "-DLLVM_TABLEGEN=/usr/lib/llvm-14/bin/llvm-tblgen", "-DLLVM_TARGETS_TO_BUILD=X86",
    "-DLLVM_ENABLE_RTTI=ON",
    *(f"-DLLVM_INCLUDE_{each}=OFF" for each in ["TESTS", "BENCHMARKS", "EXAMPLES", "UTILS"]),
]  # fmt: skip
_CLANG = (
    "FrontendTool,Frontend,Driver,Serialization,CodeGen,Parse,Sema,StaticAnalyzer{Frontend,"
    "Checkers,Core},CrossTU,ARCMigrate,RewriteFrontend,Rewrite,Index,Format,ToolingInclusions,"
    "ToolingCore,Analysis,Edit,ASTMatchers,AST,Lex,Basic"
)
_MODULE = (
    "-triple x86_64-linux-gnu -emit-llvm -disable-llvm-passes -fcxx-exceptions -fexceptions -w -o -"
)
_LOOPS = "--mlir-disable-threading --affine-loop-tile=tile-size="
_LOWERED = (
    f"{_LOOPS}4 --lower-affine --convert-scf-to-std --canonicalize --cse --convert-arith-to-llvm "
    "--convert-memref-to-llvm --convert-std-to-llvm --reconcile-unrealized-casts"
)
_UNROLLED = f"{_LOOPS}8 --affine-loop-unroll --canonicalize"
_LIBRARIES = "$(llvm-config-14 --link-static --libs) -lz -ldl -lm -ltinfo -l:libz3.so.4"
_SHARED = "-shared --threads=1 -o linked.so"
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
        "llvm", "opt", _LLVM, f"{_PASSES} ../inlines.ll",
        [f"{_PASSES} ../picosat.ll", f"{_PASSES} ../table.ll ../node.ll"],
        source="llvm-toolchain-14/llvm", driver="passes.cc", libraries="-L/usr/lib/llvm-14/lib "
        "$(llvm-config-14 --link-static --libs passes irreader) -lz -ldl -lm -ltinfo",
        generated=["intrinsics_gen"],
    ),
    Large(
        "clang", "clang", [*_LLVM, "-DLLVM_ENABLE_PROJECTS=clang"],
        f"{_MODULE} -std=c++17 ../thread_local.ii",
        [f"{_MODULE} -std=c++17 ../string_util.ii", f"{_MODULE} ../picosat.i"],
        source="llvm-toolchain-14/llvm", driver="frontend.cc",
        libraries=f"-L/usr/lib/llvm-14/lib -lclang{{{_CLANG}}} {_LIBRARIES}",
        generated=["intrinsics_gen", "clang-tablegen-targets", "ClangOpenCLBuiltinsImpl"],
    ),
    Large(
        "mlir", "mlir-opt", [*_LLVM, "-DLLVM_ENABLE_PROJECTS=mlir",
         "-DMLIR_TABLEGEN=/usr/lib/llvm-14/bin/mlir-tblgen"],
        f"{_LOWERED} ../nests.mlir", [f"{_LOWERED} ../stencils.mlir", f"{_UNROLLED} ../nests.mlir"],
        source="llvm-toolchain-14/llvm", driver="dialects.cc",
        libraries=f"-L/usr/lib/llvm-14/lib /usr/lib/llvm-14/lib/libMLIR*.a {_LIBRARIES}",
        generated=["intrinsics_gen", "mlir-headers"],
    ),
    Large(
        "lld", "lld", [*_LLVM, "-DLLVM_ENABLE_PROJECTS=lld"],
        f"{_SHARED} ../inlines.bc", [f"{_SHARED} ../node.bc", f"{_SHARED} --lto-O1 ../picosat.bc"],
        source="llvm-toolchain-14/llvm", driver="linker.cc",
        libraries=f"-L/usr/lib/llvm-14/lib -llld{{ELF,Common}} {_LIBRARIES}",
        generated=["intrinsics_gen", "X86CommonTableGen"],
        kept=["Dominators.cpp.o", "MachineInstr.cpp.o"],
    ),
)  # fmt: skip
