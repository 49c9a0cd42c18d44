"""Data access profiles, which clang parts data by: LLVM's YAML of memory profiles."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbr2pgo.profiles.base import Form, Output, OutputFormat, Written, flag, shell_word
from lbr2pgo.profiles.data.accessed_symbols import (
    ACCESSED,
    LIMITS,
    NAMED,
    AccessedSymbols,
    accessed_symbols,
)
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass

if TYPE_CHECKING:
    from lbr2pgo.evidence.collector import Finding

_UNIQUE = ".__uniq."
_HEAD = "---\nDataAccessProfiles:\n"


@dataclass(frozen=True, slots=True)
class DataAccessOutput(Output):
    """How often objects were accessed, and which never were."""

    path: Path = field(
        metadata=flag("--data-access", "accesses to data for llvm-profdata merge, and clang")
    )

    @property
    def next_step(self) -> str:
        """See `Output`."""
        merged = shell_word(self.path.with_suffix(".memprof"))
        return (
            f"llvm-profdata merge --memprof-version=4 {shell_word(self.path)} -o {merged}; clang "
            f"-O2 -fmemory-profile-use={merged} -fpartition-static-data-sections "
            "-mllvm -memprof-annotate-static-data-prefix"
        )

    def findings(self, work: Work) -> tuple[Finding[Any], ...]:
        """See `Output`."""
        from lbr2pgo.evidence.data_accesses import DATA_ACCESSES

        return (DATA_ACCESSES,)

    def write(self, work: Work) -> Written:
        """See `Output`."""
        from lbr2pgo.support.output import write_pieces

        found = work.once(accessed_symbols)
        with work.writing("data access profile"):
            write_pieces(self.path, (os.fsencode(line) + b"\n" for line in lines_of(found)))
        return Written(found.tallies)


def lines_of(found: AccessedSymbols) -> Iterator[str]:
    """LLVM: llvm/include/llvm/ProfileData/MemProfYAML.h, DataAccessProfiles; most accessed first.

    String literals, which LLVM knows by hashes of their contents, have no symbol: none is said to
    be cold.
    """
    counts = Counter[str]()
    for name, count in zip(found.names, found.count.tolist(), strict=True):
        counts[_canonical(name)] += count
    yield from ("---", "DataAccessProfiles:", "  SampledRecords:")
    for name, count in counts.most_common():
        if count:
            yield f"    - Symbol: {_scalar(name)}"
            yield f"      AccessCount: {count}"
    cold = [name for name, count in counts.items() if not count]
    yield "  KnownColdSymbols:" if cold else "  KnownColdSymbols: [ ]"
    yield from (f"    - {_scalar(name)}" for name in cold)
    yield from ("  KnownColdStrHashes: [ ]", "...")


def _canonical(name: str) -> str:
    """What LLVM knows a symbol by, and each by once (InstrProfSymtab::getCanonicalName).

    >>> [_canonical(name) for name in ("table", "f.table.1", "t.__uniq.12.llvm.3", ".L")]
    ['table', 'f', 't.__uniq.12', '.L']
    """
    unique = name.find(_UNIQUE)
    end = name.find(".", unique + len(_UNIQUE) if unique >= 0 else 0)
    return name[:end] if end > 0 else name


def _scalar(name: str) -> str:
    """A name that YAML takes for nothing else.

    >>> _scalar("it's"), _scalar("yes")
    ("'it''s'", "'yes'")
    """
    return "'" + name.replace("'", "''") + "'"


FORMAT = OutputFormat(
    name="data_access",
    suffix=".data-access.yaml",
    output=DataAccessOutput,
    forms=(
        Form(
            "data_access", "data access profile", "llvm-profdata reads it",
            "llvm-profdata merge, clang", needs="accesses to data",
        ),
    ),
    references=("LLVM: llvm/include/llvm/ProfileData/MemProfYAML.h",),
    limitations=(f"{LIMITS[1]}, and string literals",),
    steps=(ACCESSED, NAMED),
    only_written=_HEAD.encode(),
)  # fmt: skip
