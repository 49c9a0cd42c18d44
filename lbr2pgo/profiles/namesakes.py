"""Functions that a program has under other names than a profile: no sign of another program.

clang's -funique-internal-linkage-names (-fpseudo-probe-for-profiling implies it) puts a hash of the
source file's path behind the names of static functions, and makes linkage names of those of C.
"""

from __future__ import annotations

from dataclasses import replace

from lbr2pgo.profiles.llvm.sample_names import UNIQUE_SUFFIX
from lbr2pgo.profiles.staleness import MOST_MISSING, Staleness
from lbr2pgo.program.demangle import demangled, without_unique_suffix
from lbr2pgo.program.program import Program


def with_namesakes(stale: Staleness | None, program: Program) -> Staleness | None:
    """Whether most of the heaviest missing functions are there, but for that hash."""
    if stale is None or stale.functions <= MOST_MISSING:
        return stale
    names = set(program.symbols.names)
    unique = {_base(name) for name in names if UNIQUE_SUFFIX in name}

    def is_there(name: str) -> bool:
        own, base = without_unique_suffix(_symbol(name)), _base(name)
        return base in unique or (UNIQUE_SUFFIX in name and not names.isdisjoint((own, base)))

    there = sum(map(is_there, stale.missing))
    return replace(stale, is_renamed=2 * there > len(stale.missing))


def _base(name: str) -> str:
    """What the source calls it.

    >>> _base("_ZL3runPK7programPi.__uniq.123"), _base("run/1")
    ('run', 'run')
    """
    return demangled(without_unique_suffix(_symbol(name))).partition("(")[0]


def _symbol(name: str) -> str:
    """Without what BOLT puts behind a local symbol's name (`name/file.c/1`)."""
    return name.partition("/")[0]
