"""Flows from branches, of recorders that kept some of them alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders.elf import Function
from builders.flows import Trace, flow_of
from builders.recordings import PIE, RECORDING

from lbr2pgo.analyses.accuracy import Accuracy, EdgeCounts, measure
from lbr2pgo.analyses.judging import exact_edges_of
from lbr2pgo.cli import main
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model.branch_counts import BRANCH, FROM, BranchCounts, aggregate
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.model.waterfall import check
from lbr2pgo.profiles.registry import output, steps
from lbr2pgo.program.blocks.indirect_jumps import indirect_targets
from lbr2pgo.program.code.code_graph import IndirectTargets, code_graph
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.from_branches import (
    Kept,
    branch_weights,
    counts_with_flow,
    kept_by,
)
from lbr2pgo.replay.inference.graph_weights import UNKNOWN
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.replay.replay import Flow, replay
from lbr2pgo.sources.base import EventInfo
from lbr2pgo.support.errors import InputError

ALL = frozenset(Kind)
EXACT = Path(str(RECORDING).replace(".perf.data", ".exact.npz"))


@pytest.fixture(scope="module")
def whole() -> Flow:
    return read_and_replay(Inputs((RECORDING,), PIE)).flow


@pytest.fixture(scope="module")
def program() -> Program:
    return Program.open(PIE)


@pytest.fixture(scope="module")
def exact(program: Program) -> EdgeCounts:
    return exact_edges_of(EXACT, program)


@pytest.fixture(scope="module")
def targets(program: Program, exact: EdgeCounts) -> IndirectTargets:
    return indirect_targets(program, exact.source[exact.source > 0])


def single(whole: Flow, kinds: frozenset[Kind]) -> BranchCounts:
    """What a recorder of single branches of these kinds would have kept."""
    branches, code = whole.branches, whole.instructions
    kind = np.append(code.kind, np.uint8(Kind.OTHER))[whole.branch_from]
    branches = branches.take(np.isin(kind, [int(each) for each in kinds]))
    return aggregate(
        branches.from_, branches.to, np.zeros_like(branches.from_),
        branches.known | np.uint8(BRANCH), branches.count, branches.mispredicted,
        branches.prediction_unknown, build_id=whole.counts.build_id,
    )  # fmt: skip


def judged(counts: BranchCounts, program: Program, exact: EdgeCounts) -> Accuracy:
    return measure(replay(counts, program), exact, program)


@pytest.mark.parametrize(
    ("kinds", "conditional", "blocks"),
    [(ALL, 0.9, 0.95), (frozenset({Kind.COND}), 0.3, 0.1), (ALL - {Kind.COND}, 0.5, 0.8)],
    ids=["single", "conditional", "others"],
)
def test_flow_tells_what_ran_between_branches(
    whole: Flow,
    program: Program,
    exact: EdgeCounts,
    targets: IndirectTargets,
    kinds: frozenset[Kind],
    conditional: float,
    blocks: float,
) -> None:
    counts = single(whole, kinds)
    alone = judged(counts, program, exact)
    kept = Kept(kinds, False)
    inferred = judged(
        counts_with_flow(replay(counts, program), program, kept, targets), program, exact
    )
    assert alone.blocks.overlap == 0
    assert inferred.blocks.overlap > blocks
    assert inferred.conditional.overlap > max(conditional, alone.conditional.overlap)


def test_whole_stacks_stay_nearly_as_they_are(
    whole: Flow, program: Program, exact: EdgeCounts, targets: IndirectTargets
) -> None:
    before = measure(whole, exact, program)
    after = judged(counts_with_flow(whole, program, Kept(ALL, True), targets), program, exact)
    assert after.conditional.overlap > before.conditional.overlap - 0.01
    assert after.blocks.overlap > before.blocks.overlap - 0.01


def test_what_leads_through_pointers_stays_as_it_was_recorded(
    whole: Flow, program: Program
) -> None:
    counts = counts_with_flow(whole, program, Kept(ALL, True))
    for kind in (Kind.INDIRECT_CALL, Kind.INDIRECT_JUMP, Kind.RET):
        rows = []
        for each in (whole.branches, counts.branches()):
            place = np.where(each.known & FROM != 0, whole.instructions.index_of(each.from_), -1)
            chosen = (place >= 0) & (whole.instructions.kind[place] == kind)
            rows.append((each.to[chosen].tolist(), each.count[chosen].tolist()))
        assert rows[0] == rows[1]


def test_no_more_branches_are_mispredicted_than_were(whole: Flow, program: Program) -> None:
    counts = counts_with_flow(whole, program, Kept(ALL, True)).branches()
    assert (counts.mispredicted + counts.prediction_unknown <= counts.count).all()
    assert 0 < counts.mispredicted.sum() <= whole.branches.mispredicted.sum()


@pytest.mark.parametrize(
    ("events", "kinds", "is_whole"),
    [
        ([], ALL, True),
        ([EventInfo("any", branch_sample_type=1 << BRANCH_FILTER_BITS["any"])], ALL, True),
        ([EventInfo("spe", records_single_branches=True)], ALL, False),
        (
            [EventInfo("calls", branch_sample_type=1 << BRANCH_FILTER_BITS["any_call"])],
            {Kind.CALL, Kind.INDIRECT_CALL},
            False,
        ),
        (
            [
                EventInfo("a", branch_sample_type=1 << BRANCH_FILTER_BITS["any_call"]),
                EventInfo("b", branch_sample_type=1 << BRANCH_FILTER_BITS["cond"]),
            ],
            set(),
            False,
        ),
    ],
)
def test_what_was_kept_is_what_all_events_kept(
    events: list[EventInfo], kinds: set[Kind], is_whole: bool
) -> None:
    assert kept_by(events) == Kept(frozenset(kinds), is_whole)


def test_infer_is_said_and_the_waterfall_adds_up() -> None:
    done = convert(ConvertOptions((RECORDING,), PIE, infer=True))
    check(done.tallies, steps())
    assert any("these stacks are whole" in note for note in done.notes)


def test_every_profile_can_be_written_of_an_inferred_flow(tmp_path: Path) -> None:
    kinds = ("llvm", "fdata", "preaggregated", "counts")
    outputs = tuple(output(kind, tmp_path / kind) for kind in kinds)
    done = convert(ConvertOptions((RECORDING,), PIE, outputs, infer=True))
    check(done.tallies, steps())
    assert done.tallies["entries_in_image"] > 0
    again = convert(ConvertOptions((tmp_path / "counts",), PIE))
    assert (again.counts.count == done.counts.count).all()


def test_nothing_is_inferred_unasked() -> None:
    assert not any("inferred" in note for note in convert(ConvertOptions((RECORDING,), PIE)).notes)


def test_infer_needs_branches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="leaves out the branches"):
        ConvertOptions((RECORDING,), PIE, infer=True, no_lbr=True)
    words = ["convert", RECORDING, "--binary", PIE, "--infer", "--no-lbr"]
    assert main(list(map(str, words))) == 2
    assert "Leave out one" in capsys.readouterr().err


@pytest.mark.parametrize("arrivals", [0, 5])
def test_what_ran_behind_a_branch_without_an_end_is_unknown(tmp_path: Path, arrivals: int) -> None:
    code = bytes.fromhex(
        "c3"  # 0 ret
        "90"  # 1 nop
        "7402"  # 2 je 6
        "6690"  # 4 xchg
        "90"  # 6 nop
        "ebf8"  # 7 jmp 1
    )
    traces: list[Trace] = [(None, 6, 7, 2), *([(7, 1, None, arrivals)] if arrivals else [])]
    flow, program = flow_of(tmp_path, code, 0x2000, traces, [Function("f", 0x2000, len(code))])
    graph = code_graph(flow.instructions, program.regions)
    weights = branch_weights(graph, flow, kept_by(()))
    (on,) = np.flatnonzero(graph.is_fall & (graph.first[graph.source] == 1))
    assert weights.edge[on] == (UNKNOWN if arrivals else 0)
