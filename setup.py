"""Builds the extension modules of lbr2pgo/native; all the rest stands in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

NATIVE = Path("lbr2pgo/native")
SHARED = "lbr2pgo.native._memoryviews"
"""Cython's own code for memoryviews, compiled once for all modules."""

DIRECTIVES = {
    "language_level": 3,
    # Indices come from files: what is out of bounds raises in what users run, too. No index here
    # counts from the end.
    "boundscheck": True,
    "wraparound": False,
    "initializedcheck": False,
    # C's division: operands are not negative, and divisors are constants.
    "cdivision": True,
    "show_performance_hints": False,  # all of them say: no bounds checks
}


def _extension(name: str, source: Path) -> Extension:
    return Extension(name, [str(source)], extra_compile_args=["-O2", "-g0"])


def extensions() -> list[Extension]:
    """One module for each .pyx file, and the one that they share."""
    sources = sorted(NATIVE.glob("*.pyx"))
    modules = [_extension(f"lbr2pgo.native.{path.stem}", path) for path in sources]
    shared = _extension(SHARED, NATIVE / "_memoryviews.c")
    return cythonize(
        [*modules, shared],
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=SHARED,
        build_dir="build/cython",
    )


setup(ext_modules=extensions(), options={"build_ext": {"parallel": 2}})
