"""`Report`: all that is shown, worked out before anything is drawn.

Every string in it may come from a profile or a binary: it is data, to be escaped wherever it goes.
Functions have their linkage names; `readable.readable` gives C++ ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

from lbr2pgo.analyses.branch_facts import BranchFacts
from lbr2pgo.analyses.code_profile import CodeProfile
from lbr2pgo.analyses.distributions import Mode
from lbr2pgo.analyses.start import StartPicture
from lbr2pgo.analyses.table import Table
from lbr2pgo.model import waterfall
from lbr2pgo.support.addresses import PlacedAddress, in_file
from lbr2pgo.support.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one block took, each time it was seen; for charts.

    `cycles` ascends; `count[i]` times it took `cycles[i]`. Missing and saturated ones are apart.
    """

    name: str
    """`function+0x12` or the like."""
    line: str | None
    placed_start: PlacedAddress
    """`start` with the slot of its file, for links."""
    placed_end: PlacedAddress
    cycles: tuple[int, ...]
    count: tuple[int, ...]
    missing: int
    """How often the recorder did not say."""
    saturated: int
    """How often the counter was at its end."""
    modes: tuple[Mode, ...]
    """The largest share first."""
    is_simulated: bool = False
    """The cycles are those of a simulated processor."""
    is_loop: bool = False
    """The branch at `end` goes back to `start`: these are the times of one loop iteration."""
    before: Timing | None = None
    """The same code in another recording, to be laid over it."""

    @property
    def start(self) -> int:
        """Address of the block's first instruction in its file."""
        return in_file(self.placed_start)

    @property
    def end(self) -> int:
        """Address of the branch that ends it."""
        return in_file(self.placed_end)


@dataclass(frozen=True, slots=True)
class TimeLine:
    """When samples were taken, in equal spans of time; for a chart."""

    seconds: tuple[float, ...]
    """When each span begins, from the first sample on."""
    samples: tuple[int, ...]
    """Of each."""
    phases: tuple[float, ...]
    """Seconds, when each phase begins."""


@dataclass(slots=True)
class GraphBlock:
    """One block of a function's graph; not frozen, as it is made by the thousand."""

    placed_start: PlacedAddress
    """`start` with the slot of its file, for links."""
    placed_end: PlacedAddress
    count: int

    @property
    def start(self) -> int:
        """Address of its first instruction in its file."""
        return in_file(self.placed_start)

    @property
    def end(self) -> int:
        """First address behind it."""
        return in_file(self.placed_end)


@dataclass(slots=True)
class GraphEdge:
    """An edge between two blocks, by their position in `FunctionGraph.blocks`; likewise."""

    source: int
    target: int
    kind: str
    """`fallthrough`, `taken`, `jump` or `indirect`."""
    count: int
    share: float | None
    """Of all that left the source block; None if nothing did."""


@dataclass(frozen=True, slots=True)
class FunctionGraph:
    """Control flow of one function with its weights."""

    blocks: tuple[GraphBlock, ...]
    edges: tuple[GraphEdge, ...]
    loops: tuple[tuple[int, ...], ...] = ()
    """Blocks of each, by their position."""


@dataclass(frozen=True, slots=True)
class FunctionView:
    """One function: its annotated code and its graph."""

    name: str
    placed_start: PlacedAddress
    """`start` with the slot of its file, for links."""
    share: float
    """Of all instructions executed, in samples."""
    code: Table
    """Name `function`; one row an instruction."""
    graph: FunctionGraph
    source: Table | None = None
    """Name `source`; one row a source line that ran. None where nobody asked."""
    branches: tuple[BranchFacts, ...] = ()
    """For pages."""

    @property
    def start(self) -> int:
        """Its address in its file."""
        return in_file(self.placed_start)


@dataclass(frozen=True, slots=True)
class RanFunctions:
    """All functions that ran, for pages."""

    table: Table
    """As that of `hot-functions`, whole."""
    pieces: tuple[tuple[tuple[int, int], ...], ...]
    """Of each row, where its code begins and ends; fragments that were split off are behind it."""


@dataclass(slots=True)
class CallNode:
    """One function in a tree of callers and callees, for a flame graph; the root is `[all]`.

    Not frozen either.
    """

    name: str
    total: int
    """Samples in it and in what it called."""
    own: int
    """Samples in itself."""
    callees: tuple[CallNode, ...]
    """Largest total first."""

    def nodes(self) -> Iterator[CallNode]:
        """Itself and all below it, callers before their callees."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.callees)


@dataclass(frozen=True, slots=True)
class Report:
    """A whole report."""

    title: str
    binary: str
    build_id: str | None
    profiles: tuple[str, ...]
    details: tuple[tuple[str, str], ...]
    """Facts about the recording, each with what it is called (`cpu`, `command line`…)."""
    waterfall: tuple[waterfall.Row, ...]
    tables: tuple[Table, ...]
    """In the order in which they are to be shown."""
    timings: tuple[Timing, ...] = ()
    """Of the hottest blocks; empty without cycle counts."""
    time_line: TimeLine | None = None
    """For pages; None where samples don't say when they were taken."""
    start: StartPicture | None = None
    """For pages; None where not every branch was recorded."""
    call_tree: CallNode | None = None
    """Only of call-stack recordings."""
    call_graph: CallNode | None = None
    """Instructions of functions, shared among their callers; see `analyses.call_graph`."""
    functions: tuple[FunctionView, ...] = ()
    """The functions that were asked for, or the hottest ones."""
    notes: tuple[str, ...] = ()
    """What was assumed, and what the files had lost; whole sentences."""
    code: CodeProfile | None = None
    """Instructions with their frames, for exports that hold code; None where nobody asked."""
    summary: tuple[str, ...] = ()
    """The answers at first sight; whole sentences. Empty where only a part was asked for."""
    first: tuple[str, ...] = ()
    """Names of the tables that are worth the first look; as `summary`."""
    named: tuple[str, ...] = ()
    """Names of the tables that were asked for one by one."""
    summary_places: tuple[int | str | None, ...] = ()
    """What each of them is about: a placed address, a table's name, or nothing of its own."""
    ran: RanFunctions | None = None
    """None where nobody asked."""
    call_graph_before: CallNode | None = None
    """The same of the recording that this one is compared with."""
    open_function: Callable[[int], FunctionView | None] | None = field(
        default=None, repr=False, compare=False
    )
    """Shows any function that ran, by its start, for pages that are served; where they are made."""

    def table(self, name: str) -> Table | None:
        """The table of this name, if the report has it."""
        return next((table for table in self.tables if table.name == name), None)
