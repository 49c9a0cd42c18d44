"""How near profiles come to the exact counts, by what recorded them and how much of it.

Samples of instructions are drawn from the exact counts, without any bias but the skid that is asked
for. Branch stacks are those of a recording, cut to fewer entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from lbr2pgo.analyses.accuracy import EdgeCounts, executions, measure
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit
from lbr2pgo.counting.count import count
from lbr2pgo.model.address_space_events import SpaceEvent
from lbr2pgo.model.branch_counts import FROM, TO
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.program.blocks.indirect_jumps import indirect_targets
from lbr2pgo.program.code.code_graph import CodeGraph, IndirectTargets, code_graph
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.call_evidence import BlockCalls
from lbr2pgo.replay.inference.from_instructions import instruction_weights
from lbr2pgo.replay.inference.network import infer
from lbr2pgo.replay.newest_runs import impute
from lbr2pgo.replay.replay import replay
from lbr2pgo.sources.base import SourceInfo, StackSource, SymbolResolver
from lbr2pgo.support.arrays import F64, I64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.sums import overlap

SAMPLES = (1_000, 10_000, 100_000, 1_000_000)
SKIDS = (0, 1, 2)
"""Instructions between the one that counted and the one that a sample names."""
DEPTHS = (4, 8, 16, 32, 64)
_HOT = 0.9
"""Hot branches are the most frequent ones that make up so much of all that were executed."""


@dataclass(frozen=True, slots=True)
class Point:
    """One profile, judged."""

    recorder: str
    """`instructions` or `branches`."""
    samples: int
    depth: int | None
    """Entries of a stack."""
    skid: int | None
    corrected: bool
    """Whether a flow was inferred, or fall-throughs behind newest branches were added."""
    edges: float
    """Of all; of samples of instructions, of those within functions with known targets."""
    conditional: float
    blocks: float
    wrong: float | None
    """Part of the hot conditional branches, by their counts, whose more frequent way is wrong."""


_COLUMNS = (
    Column("recorder", "recorder", Unit.TEXT, FIGURE),
    Column("samples", "samples", Unit.COUNT),
    Column("depth", "entries", Unit.COUNT),
    Column("skid", "skid", Unit.COUNT),
    Column("corrected", "corrected", Unit.TEXT),
    Column("edges", "edges", Unit.SHARE, FIGURE),
    Column("conditional", "conditional", Unit.SHARE),
    Column("blocks", "blocks", Unit.SHARE),
    Column("wrong", "wrong ways", Unit.SHARE),
)


def curve_table(points: Sequence[Point]) -> Table:
    """A row a profile."""
    rows = tuple(
        (each.recorder, each.samples, each.depth, each.skid, "yes" if each.corrected else "no",
         each.edges, each.conditional, each.blocks, each.wrong)
        for each in points
    )  # fmt: skip
    return Table("accuracy-curves", "Overlap by recorder", _COLUMNS, rows)


class InstructionCurve:
    """Samples of instructions, with and without the inference of a flow."""

    def __init__(
        self, exact: EdgeCounts, program: Program, targets: IndirectTargets | None = None
    ) -> None:
        """`graph` is of the `code` that ran, each instruction as often as `ran` says."""
        inside = exact.target[exact.known & TO != 0], exact.source[exact.known & FROM != 0]
        self.code = program.instructions_for(np.concatenate(inside))
        self._exact = exact
        self.ran = executions(exact, self.code)
        self.graph = code_graph(self.code, program.regions, targets)
        self.calls = BlockCalls.of(self.graph, self.code)

    @classmethod
    def of(cls, exact: EdgeCounts, program: Program) -> InstructionCurve:
        """With the targets that the jump tables of functions that ran have."""
        return cls(exact, program, indirect_targets(program, exact.source[exact.source > 0]))

    def points(
        self, samples: Sequence[int] = SAMPLES, skids: Sequence[int] = SKIDS
    ) -> Iterator[Point]:
        """Two points for each number of samples and each skid."""
        for skid in skids:
            late = self.ran.astype(np.float64)
            for _ in range(skid):
                late = self.later(late)
            for number in samples:
                random = np.random.default_rng(1)
                drawn = random.multinomial(number, late / late.sum()).astype(np.int64)
                yield self._judged(drawn, skid, corrected=False)
                yield self._judged(drawn, skid, corrected=True)

    def _judged(self, drawn: I64, skid: int, *, corrected: bool) -> Point:
        graph, weights = self.graph, instruction_weights(self.graph, drawn)
        node, edge = weights.node, _split(graph, weights.node)
        if corrected:
            flow = infer(graph, weights, self.calls)
            node, edge = flow.node, flow.edge
        blocks, rows = ~graph.is_hub, self.is_conditional
        return Point(
            "instructions", int(drawn.sum()), None, skid, corrected,
            overlap(self.edge[self._is_branch], edge[self._is_branch]),
            overlap(self.edge[rows], edge[rows]),
            overlap(self.ran[graph.first[blocks]], node[blocks]),
            _wrong_ways(graph.source[rows], self.edge[rows], edge[rows]),
        )  # fmt: skip

    @cached_property
    def is_conditional(self) -> Bools:
        """(m,): edges of the graph whose source ends with a conditional branch."""
        graph, kind = self.graph, self.code.kind[self.graph.last]
        found: Bools = ((kind == Kind.COND) & ~graph.is_hub)[graph.source]
        return found

    @cached_property
    def _is_branch(self) -> Bools:
        """(m,): conditional edges, and jumps to known targets."""
        graph = self.graph
        jumps = ~(graph.is_fall | graph.is_hub[graph.source] | graph.is_hub[graph.target])
        found: Bools = self.is_conditional | jumps
        return found

    @cached_property
    def edge(self) -> I64:
        """(m,): how often each edge of the graph ran."""
        code, graph, exact = self.code, self.graph, self._exact
        source, target = code.index_of(exact.source), code.index_of(exact.target)
        ran: dict[tuple[int, int], int] = {}
        for pair, times in zip(
            zip(source.tolist(), target.tolist(), strict=True), exact.count.tolist(), strict=True
        ):
            ran[pair] = ran.get(pair, 0) + times
        pairs = zip(
            graph.last[graph.source].tolist(), graph.first[graph.target].tolist(), strict=True
        )
        return np.array([ran.get(pair, 0) for pair in pairs], np.int64)

    def later(self, samples: F64) -> F64:
        """Samples (r,) of instructions, one instruction later in the run."""
        code, exact = self.code, self._exact
        source, target = code.index_of(exact.source), code.index_of(exact.target)
        rows = (source >= 0) & (target >= 0) & exact.inside
        source, target, count = source[rows], target[rows], exact.count[rows]
        share = samples / np.maximum(self.ran, np.uint64(1))
        left = np.bincount(source, count, len(code))
        straight = np.maximum(self.ran - left, 0.0) * share
        moved: F64 = np.bincount(target, count * share[source], len(code)).astype(np.float64)
        moved[1:] += np.where(code.ends_line[:-1], 0.0, straight[:-1])
        return moved


def _split(graph: CodeGraph, node: I64) -> I64:
    """Counts of edges (m,) without a flow: what a block has, split by what its targets have."""
    weight = np.maximum(node, 0)[graph.target].astype(np.float64)
    total = np.bincount(graph.source, weight, len(graph))[graph.source]
    ways = np.bincount(graph.source, minlength=len(graph))[graph.source]
    share = np.where(total > 0, weight / np.maximum(total, 1), 1 / np.maximum(ways, 1))
    split: I64 = np.rint(np.maximum(node, 0)[graph.source] * share).astype(np.int64)
    return split


def _wrong_ways(source: I64, truth: I64, guess: I64) -> float:
    """Part of the hot branches, by their counts, of which another way is the most frequent."""
    branches, place = np.unique(source, return_inverse=True)
    total = np.bincount(place, truth, len(branches))
    order = np.argsort(-total, kind="stable")
    hot = np.zeros(len(branches), np.bool_)
    hot[order[: int(np.searchsorted(np.cumsum(total[order]), _HOT * total.sum())) + 1]] = True
    right = _most(place, truth, len(branches)) == _most(place, guess, len(branches))
    return float(total[hot & ~right].sum() / max(total[hot].sum(), 1))


def _most(group: I64, values: I64, groups: int) -> I64:
    """The row of each group with the largest value, the first of several."""
    order = np.lexsort((np.arange(len(group)), -values, group))
    first: I64 = order[np.searchsorted(group[order], np.arange(groups))]
    return first


@dataclass(frozen=True, slots=True)
class _Shortened:
    """A source whose stacks keep their newest entries alone. Implements `StackSource`."""

    source: StackSource
    depth: int

    @property
    def info(self) -> SourceInfo:
        return self.source.info

    def space_events(self) -> Sequence[SpaceEvent]:
        return self.source.space_events()

    def batches(self, resolve: SymbolResolver | None = None) -> Iterator[BranchStacks]:
        for batch in self.source.batches(resolve):
            yield batch.cut(self.depth)

    def health(self) -> Mapping[str, int]:
        return self.source.health()


def depth_points(
    source: StackSource, exact: EdgeCounts, program: Program, depths: Sequence[int] = DEPTHS
) -> Iterator[Point]:
    """Two points for each depth, up to that of the recording."""
    longest = max((int(np.diff(batch.offsets).max(initial=0)) for batch in source.batches()),
                  default=0)  # fmt: skip
    for depth in (each for each in depths if each <= longest):
        cut, layout = _Shortened(source, depth), program.image.layout
        counts = count(cut, layout, resolve=program.address_of).counts
        for corrected in (False, True):
            found = measure(
                replay(impute(counts) if corrected else counts, program), exact, program
            )
            yield Point(
                "branches", counts.tallies["samples_mapped"], depth, None, corrected,
                found.edges.overlap, found.conditional.overlap, found.blocks.overlap, None,
            )  # fmt: skip
