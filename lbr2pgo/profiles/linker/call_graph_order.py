"""Calls between functions, for a linker that orders functions by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.profiles.base import Form, Output, OutputFormat, Written, flag, readers_in, shell_word
from lbr2pgo.profiles.linker.symbol_order import LIMITS, NAMED, RAN, NamedFlow, named_flow
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CallGraphOutput(Output):
    """Who called whom how often, for lld."""

    path: Path = field(
        metadata=flag("--call-graph-order", "calls for ld.lld --call-graph-ordering-file")
    )

    @property
    def next_step(self) -> str:
        """See `Output`."""
        order = f"-Wl,--call-graph-ordering-file={shell_word(self.path)}"
        return f"cc -O2 -ffunction-sections -fuse-ld=lld {order}"

    def write(self, work: Work) -> Written:
        """See `Output`."""
        from lbr2pgo.profiles.linker import linker_lists

        found = work.once(named_flow)
        lines = list(lines_of(found))
        if not lines:
            raise EmptyProfileError(found.tallies, what="no function called another one by name")
        with work.writing("call graph"):
            linker_lists.write(linker_lists.CALLS, lines, self.path)
        return Written(found.tallies)


def lines_of(found: NamedFlow) -> Iterator[str]:
    """Caller, callee and count, of calls between functions that have names."""
    calls, names = found.flow.calls, found.names
    columns = (calls.caller.tolist(), calls.callee.tolist(), calls.count.tolist())
    for caller, callee, count in zip(*columns, strict=True):
        if names[caller] and names[callee]:
            yield f"{names[caller][0]} {names[callee][0]} {count}"


FORMAT = OutputFormat(
    name="call_graph_order",
    suffix=".calls",
    output=CallGraphOutput,
    forms=(
        Form(
            "call_graph_order",
            "calls between functions",
            "lld reads it",
            "ld.lld --call-graph-ordering-file",
        ),
    ),
    references=("LLVM: lld/ELF/Driver.cpp readCallGraph",),
    limitations=LIMITS,
    steps=(RAN, NAMED),
    readers=readers_in("linker.linker_lists", "CALL_LISTS"),
)
