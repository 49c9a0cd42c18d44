"""The order of functions alone, for a linker and any compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.model.waterfall import Step
from lbr2pgo.profiles.base import Form, Output, OutputFormat, Written, flag, readers_in
from lbr2pgo.profiles.propeller.format import UNNAMED, ordered_by
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass

if TYPE_CHECKING:
    from lbr2pgo.profiles.linker.function_order import FunctionFlow

RAN = Step("functions_ran", "functions that ran", "functions", None)
LIMITS = (
    "needs a symbol table, and a section for each function (-ffunction-sections)",
    "functions that share a name are left out",
)
"""Of all that tells a linker of functions."""
NAMED = Step("functions_named", "functions named to the linker", "functions", RAN.key, UNNAMED)


@dataclass(frozen=True, slots=True)
class NamedFlow:
    """How much each function ran, and the names that the linker knows it by."""

    flow: FunctionFlow
    names: Sequence[tuple[str, ...]]
    tallies: Mapping[str, int]


def named_flow(work: Work) -> NamedFlow:
    """Functions that ran: to be had by `Work.once`; raises EmptyProfileError if none has a name."""
    from lbr2pgo.profiles.linker.function_order import function_flow
    from lbr2pgo.profiles.linker.linker_names import names_at

    functions = work.program.functions
    with work.timings.stage("add up functions"):
        found = function_flow(work.flow, functions)
        names, lost = names_at(functions.start[found.function].tolist(), work.program.symbols)
    tallies = {RAN.key: len(names), NAMED.key: len(names) - sum(lost.values())}
    tallies |= {f"{NAMED.key}/{why}": number for why, number in lost.items()}
    if not tallies[NAMED.key]:
        raise EmptyProfileError(tallies, what="no function that the linker can name ran")
    return NamedFlow(found, names, tallies)


@dataclass(frozen=True, slots=True)
class SymbolOrderOutput(Output):
    """Functions in their new order, for lld."""

    path: Path = field(
        metadata=flag("--symbol-order", "order of functions for ld.lld --symbol-ordering-file")
    )

    @property
    def next_step(self) -> str:
        """See `Output`."""
        return f"cc -O2 {ordered_by(self.path)}"

    def write(self, work: Work) -> Written:
        """See `Output`."""
        from lbr2pgo.profiles.linker import linker_lists
        from lbr2pgo.profiles.linker.function_order import by_calls

        found = work.once(named_flow)
        flow = found.flow
        order = by_calls(flow.size, flow.weight, flow.calls)
        lines = [name for i in order.tolist() for name in found.names[i]]
        with work.writing("symbol order"):
            linker_lists.write(linker_lists.SYMBOLS, lines, self.path)
        return Written(found.tallies)


FORMAT = OutputFormat(
    name="symbol_order",
    suffix=".order",
    output=SymbolOrderOutput,
    forms=(
        Form("symbol_order", "order of functions", "lld reads it", "ld.lld --symbol-ordering-file"),
    ),
    references=("LLVM: lld/docs/ld.lld.1, --symbol-ordering-file", "Ottoni and Maher, CGO 2017"),
    limitations=LIMITS,
    steps=(RAN, NAMED),
    readers=readers_in("linker.linker_lists", "ORDERS"),
)
