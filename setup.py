"""Builds the extension modules, one for each .pyx file; all the rest stands in pyproject.toml."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

SHARED = "lbr2pgo.native._memoryviews"
"""Cython's own code for memoryviews, compiled once for all modules."""

DIRECTIVES = {
    "language_level": 3,
    # Indices come from files: what is out of bounds raises in what users run, too. No index here
    # counts from the end.
    "boundscheck": True,
    "wraparound": False,
    "initializedcheck": False,
    # C's division: operands are not negative, and divisors are constants or checked.
    "cdivision": True,
    # No module has state of its own: what a function is given is all that it works on.
    "freethreading_compatible": True,
    "show_performance_hints": False,  # all of them say: no bounds checks
    "emit_code_comments": False,  # a quarter of the C
}
BUSIEST = {
    "_brstack_lines", "_brstack_samples", "_chain_paths", "_contexts", "_file_spans",
    "_first_times", "_function_rows", "_functions", "_groups", "_line_sums", "_lines", "_moments",
    "_perf_records", "_preaggregated", "_preinliner", "_probe_sums", "_search", "_selection",
    "_traces", "_translation", "_unwinder", "_walks", "_x86_branches", "key_table", "row_ids",
    "text_numbers", "walk",
}  # fmt: skip
"""Modules whose loops go over every sample, or over all code and its debug information. At -O2 GCC
leaves the walk along a stack out of line, which makes counting half as slow again; reading DWARF
takes an eighth longer at -O1. Everywhere else -O1 takes half the time to compile. (-Og takes a
third less still, and conversions take 2 to 5 % longer.)"""
LIMITED = ("cp311", "0x030B0000")
"""The first Python whose wheels serve all later ones, and its number: loops hardly call Python, so
that its limited API costs them nothing (docs/notes/performance.md)."""
COMPILING = {"bdist_wheel", "build", "build_ext", "develop", "editable_wheel", "install"}


def check_compiler() -> None:
    """End with one line where nothing can be compiled, before setuptools prints pages."""
    compilers = (os.environ.get("CC", "cc").split()[0], "gcc", "clang")
    headers = Path(sysconfig.get_path("include"), "Python.h")
    if not any(map(shutil.which, compilers)) or not headers.exists():
        sys.exit(
            "lbr2pgo has loops to compile: install a C compiler and Python's headers "
            "(Debian: apt-get install gcc libc6-dev python3-dev), or install a wheel."
        )


def is_limited() -> bool:
    """Whether what is built keeps to the limited API: wheels do, but of free-threaded Pythons."""
    return "bdist_wheel" in sys.argv and not sysconfig.get_config_var("Py_GIL_DISABLED")


def _extension(name: str, source: Path, level: str) -> Extension:
    macros = [("Py_LIMITED_API", LIMITED[1]), ("CYTHON_LIMITED_API", "1")] if is_limited() else []
    return Extension(
        name, [str(source)], extra_compile_args=[level, "-g0"], define_macros=macros,
        py_limited_api=is_limited(),
    )  # fmt: skip


def extensions() -> list[Extension]:
    """One module for each .pyx file, and the one that they share."""
    from Cython.Build import cythonize

    gc.disable()  # looking for cycles would take Cython half as long again
    modules = [
        _extension(
            ".".join(path.with_suffix("").parts),
            path,
            "-O3" if path.stem in BUSIEST else "-O1",
        )
        for path in sorted(Path("lbr2pgo").rglob("*.pyx"))
    ]
    memoryviews = Path("lbr2pgo/native/_memoryviews.c")
    shared = _extension(SHARED, memoryviews, "-O0")  # no loop calls it
    return cythonize(
        [*modules, shared],
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=SHARED,
        build_dir="build/cython",
        nthreads=os.cpu_count() or 1,
        quiet=True,
    )


if __name__ == "__main__":  # not in the processes that cythonize starts
    is_compiling = bool(COMPILING & set(sys.argv))
    if is_compiling:
        check_compiler()
    setup(
        ext_modules=extensions() if is_compiling else [],
        options={
            "build_ext": {"parallel": os.cpu_count() or 1},
            "bdist_wheel": {"py_limited_api": LIMITED[0] if is_limited() else False},
        },
    )
