"""The order of data, for a linker: what is accessed stands on few pages."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbr2pgo.profiles.base import Form, Output, OutputFormat, Written, flag, readers_in
from lbr2pgo.profiles.data.accessed_symbols import ACCESSED, LIMITS, NAMED, accessed_symbols
from lbr2pgo.profiles.propeller.format import ordered_by
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass

if TYPE_CHECKING:
    from lbr2pgo.evidence.collector import Finding


@dataclass(frozen=True, slots=True)
class DataOrderOutput(Output):
    """Objects that were accessed, those with most accesses a byte first."""

    path: Path = field(
        metadata=flag("--data-order", "order of data for ld.lld --symbol-ordering-file")
    )

    @property
    def next_step(self) -> str:
        """See `Output`."""
        return f"cc -O2 {ordered_by(self.path, '-fdata-sections')}"

    def findings(self, work: Work) -> tuple[Finding[Any], ...]:
        """See `Output`."""
        from lbr2pgo.evidence.data_accesses import DATA_ACCESSES

        return (DATA_ACCESSES,)

    def write(self, work: Work) -> Written:
        """See `Output`."""
        from lbr2pgo.profiles.linker import linker_lists

        found = work.once(accessed_symbols)
        with work.writing("order of data"):
            lines = [found.names[row] for row in found.densest().tolist()]
            linker_lists.write(linker_lists.DATA, lines, self.path)
        return Written(found.tallies)


FORMAT = OutputFormat(
    name="data_order",
    suffix=".data-order",
    output=DataOrderOutput,
    forms=(
        Form(
            "data_order", "order of data", "lld reads it", "ld.lld --symbol-ordering-file",
            needs="accesses to data",
        ),
    ),
    references=("LLVM: lld/docs/ld.lld.1, --symbol-ordering-file",),
    limitations=LIMITS,
    steps=(ACCESSED, NAMED),
    readers=readers_in("linker.linker_lists", "DATA_ORDERS"),
)  # fmt: skip
