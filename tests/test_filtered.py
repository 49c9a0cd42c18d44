"""Recordings that kept some branches only: what can be said is said, the rest refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders.outputs import outputs
from builders.perf_data import Event
from builders.recordings import STATIC, STATIC_RECORDING, recorded

from lbr2pgo.analyses.accuracy import measure
from lbr2pgo.analyses.judging import exact_edges_of
from lbr2pgo.cli import main
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.sources.perf_data.reader import PerfData

KEPT = {
    "any_call": (Kind.CALL, Kind.INDIRECT_CALL),
    "cond": (Kind.COND,),
    "any_ret": (Kind.RET,),
    "ind_call": (Kind.INDIRECT_CALL,),
}
USER = 1


def filtered(path: Path, name: str, *, bits: tuple[str, ...] = ()) -> Path:
    """A recording with only the branches that the filter keeps."""
    program = Program.open(STATIC)
    (batch,) = PerfData(STATIC_RECORDING).batches()
    code = program.instructions_for(np.unique(batch.from_))
    kind = np.append(code.kind, np.uint8(Kind.OTHER))[code.index_of(batch.from_)]
    kept = np.isin(kind, KEPT[name]) if name in KEPT else np.ones(len(kind), np.bool_)
    stacks = [
        [tuple(batch.entries[i].tolist()) for i in range(first, last) if kept[i]]
        for first, last in zip(batch.offsets[:-1], batch.offsets[1:], strict=True)
    ]
    filters = USER | sum(1 << BRANCH_FILTER_BITS[bit] for bit in bits or (name,))
    event = Event(branch_sample_type=filters)
    path.write_bytes(recorded(stacks, event=event))  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize("name", ["any_call", "cond"])
def test_a_filtered_recording_gives_branches_and_no_sample_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = filtered(tmp_path / "perf.data", name)
    llvm, fdata = tmp_path / "out.prof", tmp_path / "out.fdata"
    words = ["convert", path, "--binary", STATIC, "--llvm", llvm, "--fdata", fdata]
    assert main(list(map(str, words))) == 2
    said = capsys.readouterr().err
    assert "no sample profile was written" in said
    assert f"was filtered (user,{name})" in said
    assert "perf record -b" in said
    assert not llvm.exists()
    lines = fdata.read_text().splitlines()
    whole = tmp_path / "whole.fdata"
    convert(ConvertOptions((STATIC_RECORDING,), STATIC, outputs=outputs(fdata=whole)))
    known = {line.rsplit(" ", 2)[0] for line in whole.read_text().splitlines()}
    assert lines
    assert {line.rsplit(" ", 2)[0] for line in lines} <= known


def test_what_was_kept_is_counted_and_the_filter_is_said(tmp_path: Path) -> None:
    path = filtered(tmp_path / "perf.data", "any_call")
    done = convert(ConvertOptions((path,), STATIC))
    assert len(done.counts.branches()) > 0
    assert len(done.counts.runs()) == 0
    assert any("what ran between them is not known" in note for note in done.notes)


def test_a_whole_recording_beside_a_filtered_one_gives_a_profile(tmp_path: Path) -> None:
    part, out = filtered(tmp_path / "perf.data", "any_call"), tmp_path / "out.prof"
    done = convert(ConvertOptions((part, STATIC_RECORDING), STATIC, outputs=outputs(llvm=out)))
    assert out.stat().st_size > 0
    assert sum("was filtered" in note for note in done.notes) == 1


def test_a_filter_by_privilege_changes_nothing(tmp_path: Path) -> None:
    path, out = tmp_path / "perf.data", tmp_path / "out.prof"
    filtered(path, "all", bits=("any",))
    convert(ConvertOptions((path,), STATIC, outputs=outputs(llvm=out)))
    whole = tmp_path / "whole.prof"
    convert(ConvertOptions((STATIC_RECORDING,), STATIC, outputs=outputs(llvm=whole)))
    assert out.read_bytes() == whole.read_bytes()


def test_a_call_stack_recording_is_refused_with_the_line_to_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = filtered(tmp_path / "perf.data", "all", bits=("call_stack",))
    out = tmp_path / "out.prof"
    assert main(["convert", str(path), "--binary", str(STATIC), "--llvm", str(out)]) == 2
    said = capsys.readouterr().err
    assert "no counts of this binary" in said or "would be empty" in said
    assert "perf record -b" in said
    assert not out.exists()


def test_its_call_tree_is_reported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = filtered(tmp_path / "perf.data", "any_call", bits=("call_stack",))
    words = ["report", str(path), "--binary", str(STATIC), "--only", "call-stacks"]
    assert main([*words, "--format", "csv"]) == 0
    shown = capfd.readouterr().out
    assert "total_share,own_share" in shown
    assert "main" in shown
    assert main([*words[:-2], "--format", "folded"]) == 0
    folded = [line.rsplit(" ", 1) for line in capfd.readouterr().out.splitlines()]
    assert all(count.isdecimal() and stack for stack, count in folded)
    own = [int(row.split(",")[3]) for row in shown.splitlines()[1:] if row]
    assert sum(int(count) for _, count in folded) == sum(own) > 0


def test_with_a_flow_a_filtered_recording_gives_a_sample_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = filtered(tmp_path / "perf.data", "cond"), tmp_path / "out.prof"
    words = ["convert", path, "--binary", STATIC, "--llvm", out]
    assert main(list(map(str, words))) == 2
    assert "--infer" in capsys.readouterr().err
    assert main([*map(str, words), "--infer"]) == 0
    said = "".join(capsys.readouterr())
    assert "was filtered (user,cond)" in said
    assert "those of an inferred flow (--infer)" in said
    assert out.stat().st_size > 0


def stacks_with_gaps(part: float) -> list[list[tuple[int, int, int]]]:
    """Before so many of the entries the recorder has lost some, of which neither end is known."""
    (batch,) = PerfData(STATIC_RECORDING).batches()
    lost, bounds = np.random.default_rng(1).random(len(batch.entries)) < part, batch.offsets
    found = []
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        entries = [tuple(batch.entries[i].tolist()) for i in range(first, last)]
        gaps = [[(0, 0, 0)] if lost[i] else [] for i in range(first, last)]
        found.append([e for gap, entry in zip(gaps, entries, strict=True) for e in (*gap, entry)])
    return found


@pytest.mark.parametrize("part", [0.5, 0.9, 1.0])
def test_a_flow_fills_gaps_in_stacks(tmp_path: Path, part: float) -> None:
    """Up to stacks without any two neighbours, of which all is known that whole ones tell."""
    path, program = tmp_path / "perf.data", Program.open(STATIC)
    path.write_bytes(recorded(stacks_with_gaps(part)))
    exact = exact_edges_of(Path(str(STATIC_RECORDING).replace("perf.data", "exact.npz")), program)

    def conditional(path: Path, *, infer: bool) -> float:
        flow = convert(ConvertOptions((path,), STATIC, infer=infer)).flow
        return measure(flow, exact, program).conditional.overlap

    whole = conditional(STATIC_RECORDING, infer=False)
    assert conditional(path, infer=False) < whole - 0.02
    assert conditional(path, infer=True) > whole - 0.01
