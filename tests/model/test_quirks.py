"""Quirks of recorders, planted into a clean recording: they cost themselves and nothing else."""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from builders import perf_data as build
from builders.evidence import evidence, gather
from builders.fixtures import ROOT
from builders.outputs import outputs
from builders.perf_data import Entry
from builders.recordings import STATIC, STATIC_RECORDING, recorded
from builders.sources import Sample

from lbr2pgo.analyses.hot_branches import hot_branches
from lbr2pgo.analyses.latency import latency
from lbr2pgo.cli import main
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.counting.chosen_samples import CountingOptions
from lbr2pgo.counting.count import count
from lbr2pgo.evidence.cycle_counts import CYCLES
from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.branch_stacks import MISSING
from lbr2pgo.model.quirks import LOSSES
from lbr2pgo.native.walk import Reason
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.fusion import FUSED
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.sources import quirks
from lbr2pgo.sources.perf_data.reader import PerfData

KERNEL, POISON = 0xFFFFFFFF81000000, 0xFFFFFFFFFFFFFFFE
ERET, IRQ, FAULT = 11 << 20, 12 << 20, 15 << 20
WRONG_PATH, NOT_TAKEN, ABORT = 1 << 24, 1 << 33, 1 << 3
CALL_STACK, ANY_USER = 1 << 11, 9

Stack = list[Entry]


@pytest.fixture(scope="module")
def program() -> Program:
    return Program.open(STATIC)


@pytest.fixture(scope="module")
def stacks() -> list[Stack]:
    """Stacks of a real run whose two newest entries differ."""
    (batch,) = PerfData(STATIC_RECORDING).batches()
    rows = batch.entries.tolist()
    bounds = batch.offsets.tolist()
    every = [
        [(a, b, flags) for a, b, flags in rows[first:last]] for first, last in pairwise(bounds)
    ]
    return [stack for stack in every if len(stack) > 2 and stack[0][:2] != stack[1][:2]][:600]


def counts_of(path: Path, stacks: Sequence[Stack], program: Program) -> BranchCounts:
    path.write_bytes(recorded(stacks))
    found = count(PerfData(path), program.image.layout, CountingOptions()).counts
    waterfall.check(found.tallies)
    return found


def same_counts(a: BranchCounts, b: BranchCounts) -> bool:
    names = ("from_", "to", "end", "known", "count", "mispredicted")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


def losses(counts: BranchCounts) -> dict[str, int]:
    return waterfall.losses_of(counts.tallies, "branches_in_image")


def planted(kind: str, entry: Entry) -> Entry:
    """An entry that shows a quirk, made of a good one."""
    source, target, flags = entry
    return {
        "empty": (0, 0, 0),
        "poison": (POISON, POISON, 2),
        "wrong_path": (source, target, flags | WRONG_PATH),
        "bogus_target": (source, target | 1 << 61, flags),
        "not_taken": (source, source + 4, flags | NOT_TAKEN),
        "exception": (source, KERNEL, 2 | IRQ),
    }[kind]


KINDS = ("empty", "poison", "wrong_path", "bogus_target", "not_taken", "exception", "duplicate")


def is_tight(entry: Entry) -> bool:
    return 0 <= entry[0] - entry[1] < 0x1000


def spoil(stacks: Sequence[Stack], kinds: Sequence[str]) -> tuple[list[Stack], Counter[str]]:
    """Stacks with one entry more each, at either end, that shows a quirk; how many show which."""
    generator = random.Random(7)
    planted_: Counter[str] = Counter()
    spoiled = []
    for stack in stacks:
        kind = generator.choice(kinds)
        entry = generator.choice(stack)
        if kind == "duplicate":
            if not is_tight(stack[0]):
                stack = [stack[0], (*stack[0][:2], 1), *stack[1:]]
                planted_[kind] += 1
        elif generator.random() < 0.5:
            stack = [planted(kind, entry), *stack]
            planted_[kind] += 1
        else:
            stack = [*stack, planted(kind, entry)]
            planted_[kind] += 1
        spoiled.append(stack)
    return spoiled, planted_


@pytest.mark.parametrize("kinds", [*[(kind,) for kind in KINDS], KINDS], ids=",".join)
def test_planted_entries_are_lost_and_no_others(
    tmp_path: Path, program: Program, stacks: list[Stack], kinds: tuple[str, ...]
) -> None:
    spoiled, wanted = spoil(stacks, kinds)
    clean = counts_of(tmp_path / "clean.data", stacks, program)
    found = counts_of(tmp_path / "spoiled.data", spoiled, program)
    assert min(wanted.values()) > 5
    assert same_counts(found, clean)
    expected = {key: losses(clean).get(key, 0) + wanted[key] for key in losses(clean) | wanted}
    assert losses(found) == expected
    assert found.tallies["branches_in_image"] == clean.tallies["branches_in_image"]


def test_convert_prints_how_many_each_quirk_cost(
    tmp_path: Path, stacks: list[Stack], capsys: pytest.CaptureFixture[str]
) -> None:
    spoiled, wanted = spoil(stacks, KINDS)
    path, out = tmp_path / "perf.data", tmp_path / "out.prof"
    path.write_bytes(recorded(spoiled))
    assert main(["convert", str(path), "--binary", str(STATIC), "--llvm", str(out)]) == 0
    shown = capsys.readouterr().out
    for kind, lost in wanted.items():
        assert f"    lost {lost:,}: {waterfall.REASONS[kind].title}\n" in shown


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "duplicate"])
def test_no_line_is_drawn_across_a_planted_entry(
    tmp_path: Path, program: Program, stacks: list[Stack], kind: str
) -> None:
    """Inside a stack it also costs the one fall-through that it stands in, if there was one."""
    inside = [[*stack[:1], planted(kind, stack[1]), *stack[1:]] for stack in stacks]
    clean = counts_of(tmp_path / "clean.data", [s[:2] for s in stacks], program)
    found = counts_of(tmp_path / "spoiled.data", [s[:3] for s in inside], program)
    assert clean.runs().count.sum() > 0
    assert found.runs().count.sum() == 0
    assert np.array_equal(found.branches().count, clean.branches().count)
    assert losses(found)[kind] == len(stacks)


def test_faults_are_exceptions_too(tmp_path: Path, program: Program, stacks: list[Stack]) -> None:
    spoiled = [[(stack[0][1], KERNEL, 2 | FAULT), *stack] for stack in stacks]
    clean = counts_of(tmp_path / "clean.data", stacks, program)
    found = counts_of(tmp_path / "spoiled.data", spoiled, program)
    assert same_counts(found, clean)
    assert losses(found)["exception"] == len(stacks)


def interrupted(stack: Stack, *, returns: bool, is_half: bool) -> Stack:
    """The stack with an interrupt in its second run, at the branch that ends it."""
    at = stack[1][0]
    outside = 0 if is_half else KERNEL
    back = [(outside, at, 2 | ERET), (KERNEL + 8, KERNEL + 64, 2)] if returns else []
    return [*stack[:2], *back, (at, outside, 2 | IRQ), *stack[2:]]


@pytest.mark.parametrize("is_half", [False, True], ids=["whole", "half"])
def test_an_interrupt_whose_return_leads_back_costs_nothing(
    tmp_path: Path, program: Program, stacks: list[Stack], is_half: bool
) -> None:
    spoiled = [interrupted(stack, returns=True, is_half=is_half) for stack in stacks]
    clean = counts_of(tmp_path / "clean.data", stacks, program)
    found = counts_of(tmp_path / "spoiled.data", spoiled, program)
    assert same_counts(found, clean)
    assert gaps(found) == gaps(clean)
    assert losses(found)["exception"] == 2 * len(stacks)


def test_an_interrupt_without_its_return_costs_the_run_before_it(
    tmp_path: Path, program: Program, stacks: list[Stack]
) -> None:
    stacks = [stack for stack in stacks if stack[2][1] < 0x7000_0000]
    spoiled = [interrupted(stack, returns=False, is_half=True) for stack in stacks]
    clean = counts_of(tmp_path / "clean.data", stacks, program)
    found = counts_of(tmp_path / "spoiled.data", spoiled, program)
    assert gaps(found) == {"interrupted": len(stacks)}
    lost = clean.runs().count.sum() - found.runs().count.sum()
    assert 0 < lost <= len(stacks)
    assert np.array_equal(found.branches().count, clean.branches().count)


def test_a_return_to_elsewhere_is_not_joined() -> None:
    stack = [(0x1016, 0x1005), (0, 0x1015, ERET), (0x1011, 0, IRQ), (0x1006, 0x1010)]
    flow = evidence(Sample(stack)).flow
    assert waterfall.losses_of(flow.tallies, "runs_in_image") == {"interrupted": 1}
    assert flow.counts.runs().start.tolist() == [0x1015]


def test_joined_runs_have_no_cycles() -> None:
    """Those of the branch that ends them count from the return."""
    timed = 2 | 9 << 4
    whole = [(0x1012, 0x1015, timed), (0x1006, 0x1010, timed)]
    cut = [whole[0], (0, 0x1011, ERET), (0x1011, 0, IRQ), whole[1]]
    cycles = [evidence(Sample(stack)).found(CYCLES).cycles.tolist() for stack in (whole, cut)]
    assert cycles == [[9], [MISSING]]


def test_an_abort_costs_the_line_before_it_and_nothing_else(
    tmp_path: Path, program: Program, stacks: list[Stack]
) -> None:
    spoiled = [[(*stack[0][:2], stack[0][2] | ABORT), *stack[1:]] for stack in stacks]
    clean = counts_of(tmp_path / "clean.data", stacks, program)
    found = counts_of(tmp_path / "spoiled.data", spoiled, program)
    shorter = counts_of(tmp_path / "shorter.data", [s[1:] for s in stacks], program)
    assert losses(found) == losses(clean)
    assert np.array_equal(found.branches().count, clean.branches().count)
    assert same_runs(found, shorter)
    lost = clean.runs().count.sum() - found.runs().count.sum()
    assert gaps(found) == {"aborted": len(stacks)}
    assert len(stacks) >= lost > 0


def test_half_records_cost_nothing_but_their_unknown_ends(
    tmp_path: Path, program: Program, stacks: list[Stack]
) -> None:
    """The newest entry knows only its source, the oldest only its target."""
    spoiled = [[(s[0][0], 0, s[0][2]), *s[1:-1], (0, s[-1][1], s[-1][2])] for s in stacks]
    clean = counts_of(tmp_path / "clean.data", stacks, program)
    found = counts_of(tmp_path / "spoiled.data", spoiled, program)
    assert found.tallies == clean.tallies
    assert same_runs(found, clean)
    branches = found.branches()
    assert branches.count[branches.known & 3 != 3].sum() == 2 * len(stacks)


def gaps(counts: BranchCounts) -> dict[str, int]:
    """Fall-throughs that the recorder left unknown."""
    return waterfall.losses_of(counts.tallies, "runs_in_image")


def recorded_counts(path: Path, program: Program, content: bytes) -> BranchCounts:
    path.write_bytes(content)
    found = count(PerfData(path), program.image.layout, CountingOptions()).counts
    waterfall.check(found.tallies)
    return found


def test_branch_counters_cost_nothing(
    tmp_path: Path, program: Program, stacks: list[Stack]
) -> None:
    event = build.Event(branch_sample_type=ANY_USER | build.COUNTERS)
    found = recorded_counts(tmp_path / "a", program, recorded(stacks, event=event))
    clean = counts_of(tmp_path / "b", stacks, program)
    assert same_counts(found, clean)
    assert found.tallies == clean.tallies


def test_empty_stacks_without_hardware_index_cost_nothing(
    tmp_path: Path, program: Program, stacks: list[Stack]
) -> None:
    event = build.Event(branch_sample_type=ANY_USER | build.HW_INDEX)
    empty = build.Sample(without_hw_index=True, pid=10, tid=10).encode(event) * 7
    content = recorded(stacks, event=event, extra=empty)
    found = recorded_counts(tmp_path / "a", program, content)
    clean = counts_of(tmp_path / "b", stacks, program)
    assert same_counts(found, clean)
    changed = {key: n for key, n in found.tallies.items() if n != clean.tallies[key]}
    assert changed == {
        "samples_read": len(stacks) + 7, "samples_selected": len(stacks) + 7,
        "samples_with_stack/no_stack": 7,
    }  # fmt: skip


def test_a_filter_costs_all_lines_and_no_branch(
    tmp_path: Path, program: Program, stacks: list[Stack]
) -> None:
    event = build.Event(branch_sample_type=1 | 1 << 10)
    found = recorded_counts(tmp_path / "a", program, recorded(stacks, event=event))
    clean = counts_of(tmp_path / "b", stacks, program)
    assert losses(found) == losses(clean)
    assert np.array_equal(found.branches().count, clean.branches().count)
    assert len(found.runs()) == 0
    assert gaps(found)["filtered"] >= int(clean.runs().count.sum()) > 0


def same_runs(a: BranchCounts, b: BranchCounts) -> bool:
    left, right = a.runs(), b.runs()
    return all(
        np.array_equal(getattr(left, name), getattr(right, name))
        for name in ("start", "end", "count")
    )


def fuse(stack: Stack, code: InstructionTable) -> tuple[Stack, int]:
    """Record conditional branches at the instruction before them, as AMD does with a compare."""
    at = code.index_of(np.array([entry[0] for entry in stack], np.uint64)).tolist()
    fused, moved = [], 0
    for i, (entry, row) in enumerate(zip(stack, at, strict=True)):
        ran_compare = i + 1 < len(stack) and stack[i + 1][1] != entry[0]
        pair = row > 0 and code.run[row] == code.run[row - 1] and code.kind[row] == Kind.COND
        if pair and ran_compare and code.kind[row - 1] == Kind.OTHER:
            entry, moved = (int(code.address[row - 1]), *entry[1:]), moved + 1
        fused.append(entry)
    return fused, moved


def test_fused_branches_are_found_again(
    tmp_path: Path, program: Program, stacks: list[Stack]
) -> None:
    clean_path, fused_path = tmp_path / "clean.data", tmp_path / "fused.data"
    clean_path.write_bytes(recorded(stacks))
    clean = read_and_replay(Inputs((clean_path,), STATIC))
    pairs = [fuse(stack, clean.flow.instructions) for stack in stacks]
    fused_path.write_bytes(recorded([stack for stack, _ in pairs]))
    found = read_and_replay(Inputs((fused_path,), STATIC))
    moved = sum(number for _, number in pairs)
    assert moved > 40
    assert found.flow.tallies[FUSED] == moved
    assert same_counts(found.counts, clean.counts)
    assert found.flow.tallies["runs_valid"] == clean.flow.tallies["runs_valid"]
    assert any(f"{moved:,} branches were recorded at the compare" in note for note in found.notes)
    assert not any("compare" in note for note in clean.notes)


def test_a_report_of_fused_branches_says_so(
    tmp_path: Path, program: Program, stacks: list[Stack]
) -> None:
    clean, fused = tmp_path / "clean.data", tmp_path / "fused.data"
    clean.write_bytes(recorded(stacks))
    code = gather((clean,), STATIC).evidence.flow.instructions
    fused.write_bytes(recorded([fuse(stack, code)[0] for stack in stacks]))
    found = gather((fused,), STATIC)
    assert any("AMD branch fusion" in note for note in found.notes)
    tables = [hot_branches(each.evidence) for each in (gather((clean,), STATIC), found)]
    assert tables[0].rows == tables[1].rows


def test_fused_branches_give_the_same_fdata(tmp_path: Path, stacks: list[Stack]) -> None:
    clean, fused = tmp_path / "clean.data", tmp_path / "fused.data"
    clean.write_bytes(recorded(stacks))
    code = read_and_replay(Inputs((clean,), STATIC)).flow.instructions
    fused.write_bytes(recorded([fuse(stack, code)[0] for stack in stacks]))
    written = []
    for path in (clean, fused):
        options = ConvertOptions((path,), STATIC, outputs=outputs(fdata=path.with_suffix(".fdata")))
        convert(options)
        written.append(path.with_suffix(".fdata").read_bytes())
    assert written[0] == written[1]


def test_a_call_stack_event_beside_a_clean_one_loses_its_own_entries(
    tmp_path: Path, program: Program, stacks: list[Stack]
) -> None:
    kind = build.IDENTIFIER | build.IP | build.TID | build.TIME | build.BRANCH_STACK
    every, calls = (
        build.Event(kind, ANY_USER, ids=(1,)), build.Event(kind, ANY_USER | CALL_STACK, ids=(2,)),
    )  # fmt: skip
    space = build.mmap2(10, 0x202000, 0xA0000, str(STATIC), every.trailer(10, 10, 1))
    samples = b"".join(
        build.Sample(tuple(stack), pid=10, tid=10, time=100 + i, sample_id=1 + i % 2).encode(
            (every, calls)[i % 2]
        )
        for i, stack in enumerate(stacks)
    )
    path = tmp_path / "both.data"
    path.write_bytes(build.file_form([every, calls], space + samples))
    found = count(PerfData(path), program.image.layout, CountingOptions()).counts
    clean = counts_of(tmp_path / "clean.data", stacks[::2], program)
    assert same_counts(found, clean)
    assert losses(found)["call_stack"] == sum(map(len, stacks[1::2]))


def test_cycles_that_nobody_recorded_are_missing() -> None:
    """AMD: no cycles anywhere. The report has no latencies and says why."""
    found = evidence(Sample([(0x1016, 0x1005), (0x1009, 0x1015), (0x1016, 0x1005)]))
    cycles = found.found(CYCLES)
    assert cycles is not None
    assert set(cycles.cycles.tolist()) == {MISSING}
    tables = latency(found)
    assert all(not len(each) for each in tables)
    assert any("AMD's do not" in note for each in tables for note in each.notes)


@pytest.mark.parametrize("quirk", quirks(), ids=lambda quirk: quirk.name)
def test_what_a_quirk_names_exists(quirk) -> None:  # type: ignore[no-untyped-def]
    file, _, function = quirk.test.partition("::")
    tree = ast.parse((ROOT / file).read_text())
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    module, _, name = quirk.code.rpartition(".")
    path = ROOT / "lbr2pgo" / module.replace(".", "/")
    if path.with_suffix(".pxd").exists():  # loops see it only
        assert f" {name}(" in path.with_suffix(".pxd").read_text()
    else:
        assert hasattr(import_module(f"lbr2pgo.{module}"), name)
    assert quirk.tally in (None, FUSED, "astray")


def test_the_walk_has_a_reason_for_each_loss_and_no_others() -> None:
    """`OUTSIDE` is no fault of a recorder."""
    assert {reason.name.lower() for reason in Reason} == {
        "counted", "outside", *(loss.reason for loss in LOSSES),
    }  # fmt: skip
    assert all(loss.step in {step.key for step in waterfall.STEPS} for loss in LOSSES)


def test_every_loss_is_planted() -> None:
    """A quirk that costs something is planted here, or it stands in raw registers alone."""
    costly = [quirk for quirk in quirks() if quirk.loss or quirk.tally]
    elsewhere = [q.name for q in costly if not q.test.startswith("tests/model/test_quirks.py::")]
    assert elsewhere == ["single branches", "branches astray", "LASTFAILED"]
