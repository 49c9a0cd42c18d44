"""Branch-stack samples in; compiler profiles, BOLT fdata and branch reports out.

>>> import lbr2pgo
>>> done = lbr2pgo.convert("perf.data", "app", llvm="app.prof")  # doctest: +SKIP
>>> for row in lbr2pgo.waterfall_rows(done.tallies)[:3]:  # doctest: +SKIP
...     print(row.count, row.step.title)
128 samples read
128 chosen by event and process
128 with a branch stack

Everything here is loaded when it is first used, so that importing the package costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` takes longer to load than a command's own modules

if TYPE_CHECKING:
    from typing import Any

    from lbr2pgo.api import call_graph, convert, flow_graph, open, report
    from lbr2pgo.conversion import Conversion
    from lbr2pgo.counting.count import CountingOptions, count
    from lbr2pgo.model.branch_counts import BranchCounts
    from lbr2pgo.model.branch_stacks import BranchStacks
    from lbr2pgo.model.count_sums import merge
    from lbr2pgo.model.incomplete import EmptyProfileError, IncompleteError
    from lbr2pgo.profiles.base import Output
    from lbr2pgo.profiles.registry import output, waterfall_rows
    from lbr2pgo.program.dwarf.debug_info import DebugInfo
    from lbr2pgo.program.program import Program
    from lbr2pgo.replay.replay import Flow, ReplayOptions
    from lbr2pgo.support.errors import InputError, Lbr2pgoError, MissingToolError, OutputError

__version__ = "0.1.0"

_NAMES = {
    "api": ("call_graph", "convert", "flow_graph", "open", "report"),
    "conversion": ("Conversion",),
    "counting.count": ("CountingOptions", "count"),
    "model.branch_counts": ("BranchCounts",),
    "model.branch_stacks": ("BranchStacks",),
    "model.count_sums": ("merge",),
    "model.incomplete": ("EmptyProfileError", "IncompleteError"),
    "profiles.base": ("Output",),
    "profiles.registry": ("output", "waterfall_rows"),
    "program.dwarf.debug_info": ("DebugInfo",),
    "program.program": ("Program",),
    "replay.replay": ("Flow", "ReplayOptions"),
    "support.errors": ("InputError", "Lbr2pgoError", "MissingToolError", "OutputError"),
}
"""What stands in which module."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "BranchCounts",
    "BranchStacks",
    "Conversion",
    "CountingOptions",
    "DebugInfo",
    "EmptyProfileError",
    "Flow",
    "IncompleteError",
    "InputError",
    "Lbr2pgoError",
    "MissingToolError",
    "Output",
    "OutputError",
    "Program",
    "ReplayOptions",
    "call_graph",
    "convert",
    "count",
    "flow_graph",
    "merge",
    "open",
    "output",
    "report",
    "waterfall_rows",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"{__name__}.{_HOMES[name]}")
    return getattr(module, name)
