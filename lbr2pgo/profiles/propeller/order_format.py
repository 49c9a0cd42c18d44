"""Propeller's order of symbols, for a linker that puts sections where they are called from."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from lbr2pgo.profiles.base import Form, Output, OutputFormat, Written, flag
from lbr2pgo.profiles.propeller.format import FUNCTIONS, RAN, laid_out, ordered_by
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PropellerOrderOutput(Output):
    """Hot parts of functions, and then their cold ones, for lld."""

    path: Path = field(
        metadata=flag("--propeller-ld", "order of those clusters for lld --symbol-ordering-file")
    )

    @property
    def next_step(self) -> str:
        """See `Output`."""
        return f"clang {ordered_by(self.path)}"

    def write(self, work: Work) -> Written:
        """See `Output`."""
        from lbr2pgo.profiles.propeller.files import write_order

        laid = work.once(laid_out)
        with work.writing("Propeller's order"):
            names = [own.names for own in laid.names]
            write_order(names, laid.layout.has_cold.tolist(), self.path)
        return Written(laid.tallies)


FORMAT = OutputFormat(
    name="propeller_order",
    suffix=".propeller-ld",
    output=PropellerOrderOutput,
    forms=(
        Form(
            "propeller_order",
            "Propeller's order of symbols",
            "lld reads it",
            "ld.lld --symbol-ordering-file",
            needs="a block map",
        ),
    ),
    references=("LLVM: lld/docs/ld.lld.1, --symbol-ordering-file",),
    limitations=("goes with the clusters of the same conversion",),
    steps=(RAN, FUNCTIONS),
)
