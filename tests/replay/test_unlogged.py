"""Text of recordings that kept some branches alone, without the header that says so."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from builders.elf import Function
from builders.flows import flow_of
from builders.recordings import PIE, RECORDING

from lbr2pgo.cli import main
from lbr2pgo.counting.place import place_image
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.unlogged import unlogged
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import StackSource
from lbr2pgo.support.addresses import image_addresses, runtime_addresses

CALLS = (Kind.CALL, Kind.INDIRECT_CALL)
EVERY = tuple(Kind)


def stacks(*kept: Kind) -> Iterator[str]:
    """What perf prints of the shipped recording, as far as branches of these kinds go."""
    program, source = Program.open(PIE), open_source(RECORDING)
    assert isinstance(source, StackSource)
    code = program.instructions_for(program.functions.start)
    _, spaces = place_image(source, program.image.layout)
    for batch in source.batches():
        space = spaces.spaces_of(batch.pid, batch.time)
        for sample, (start, end) in enumerate(pairwise(batch.offsets.tolist())):
            entries = runtime_addresses(batch.entries[start:end, :2].reshape(-1))
            image, _ = spaces.to_image(int(space[sample]), entries)
            ends = image.reshape(-1, 2)
            place = code.index_of(image_addresses(ends[:, 0]))
            is_kept = (place >= 0) & np.isin(code.kind[place], kept)
            if is_kept.any():
                yield " ".join(f"{a:#x}/{b:#x}/P/-/-/1" for a, b in ends[is_kept].tolist())


def converted(text: Path, out: Path, *words: str) -> int:
    arguments = ["convert", str(text), "--binary", str(PIE), "--preaggregated", str(out), *words]
    return main(arguments)


KEPT = (
    ((Kind.COND,), "conditional branches (-j cond)"),
    (CALLS, "calls"),
    ((*CALLS, Kind.RET), "some kinds alone: no conditional branches, "),
    ((Kind.COND, *CALLS), "some kinds alone: no direct jumps, "),
)


@pytest.mark.parametrize(("kept", "seems"), KEPT)
def test_a_verdict_on_some_branches_alone_says_so(
    kept: tuple[Kind, ...], seems: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("\n".join([*stacks(*kept)] * 20) + "\n")
    assert main(["check", str(tmp_path / "text"), "--binary", str(PIE)]) == 0
    said = capsys.readouterr()
    assert f"warning: the recording seems to hold {seems}" in said.err
    assert said.out.startswith("Verdict: of little use.\n")
    assert f"  of little use the recording seems to hold {seems}" in said.out


@pytest.mark.parametrize("kept", [kinds for kinds, _ in KEPT])
def test_a_report_tells_nothing_of_what_ran_between_some_branches(
    kept: tuple[Kind, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("\n".join([*stacks(*kept)] * 20) + "\n")
    assert main(["report", str(tmp_path / "text"), "--binary", str(PIE)]) == 0
    said = capsys.readouterr().out
    assert "what ran between two entries is not known" in said
    assert not any(words in said for words in ("instructions", "fit the code", "never ran"))


@pytest.mark.parametrize(("kept", "seems"), KEPT)
def test_some_branches_alone_are_refused_unless_forced(
    kept: tuple[Kind, ...], seems: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("\n".join([*stacks(*kept)] * 20) + "\n")
    assert converted(tmp_path / "text", tmp_path / "out") == 2
    assert f"the recording seems to hold {seems}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert converted(tmp_path / "text", tmp_path / "out", "--force") == 0
    said = capsys.readouterr().err
    assert said.index("seems to hold") < said.index("wrote")


@pytest.mark.parametrize(
    ("over_others", "others", "is_doubted"), [(50, 950, True), (49, 951, False), (50, 949, False)]
)
def test_a_thousand_branches_and_one_fall_through_in_twenty_make_a_doubt(
    over_others: int, others: int, is_doubted: bool, tmp_path: Path
) -> None:
    """All branches are conditional, and some fall-throughs run over the jump between two."""
    code = bytes.fromhex("9074fdebfb74f9c3")
    traces = [(1, 0, 5, over_others), (5, 0, 1, others)]
    flow, _ = flow_of(tmp_path, code, 0x2000, traces, [Function("f", 0x2000, len(code))])
    assert (unlogged(flow) is not None) == is_doubted


def test_all_branches_are_believed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("\n".join(stacks(*EVERY)) + "\n")
    assert converted(tmp_path / "text", tmp_path / "out") == 0
    assert "seems" not in capsys.readouterr().err
