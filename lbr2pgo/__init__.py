"""Branch-stack samples in; compiler profiles, BOLT fdata and branch reports out.

>>> import lbr2pgo
>>> done = lbr2pgo.convert("perf.data", "app", llvm="app.prof")  # doctest: +SKIP
>>> for row in lbr2pgo.waterfall_rows(done.tallies)[:3]:  # doctest: +SKIP
...     print(row.count, row.step.title)
128 samples read
128 chosen by event and process
128 with a branch stack

What is public stands in `__init__.pyi`, and nowhere else: type checkers read it, and so does this
module when a name is first asked for. Importing the package costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` takes longer to load than a command's own modules

if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"


def _public() -> dict[str, str]:
    """Each public name, and the module that has it."""
    from ast import ImportFrom, parse
    from pathlib import Path  # for `open` may be ours here

    listed = parse(Path(f"{__file__}i").read_text(encoding="utf-8")).body
    imports = [node for node in listed if isinstance(node, ImportFrom)]
    return {each.name: str(node.module) for node in imports for each in node.names}


def __dir__() -> list[str]:
    return sorted({*globals(), *_public()})


def __getattr__(name: str) -> Any:
    public = _public()
    if name == "__all__":
        return sorted(public)
    if name not in public:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(public[name]), name)
    return found
