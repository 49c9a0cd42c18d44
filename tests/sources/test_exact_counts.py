"""Exact counts as a profile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders.recordings import PIE, TESTBINS

import lbr2pgo
from lbr2pgo.analyses.accuracy import exact_edges, measure
from lbr2pgo.counting.count import count
from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO
from lbr2pgo.model.exact_counts import ExactCounts, Totals
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import replay
from lbr2pgo.sources import format_of, open_source
from lbr2pgo.sources.exact_counts import FORMAT, ExactSource
from lbr2pgo.support.addresses import image_addresses
from lbr2pgo.support.errors import InputError

FILES = sorted((TESTBINS / "recordings").glob("*.exact.npz"))
COND, UNCOND, CALL, RET = 1, 2, 4, 6


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_edge_and_block_has_its_exact_count(path: Path) -> None:
    machine, name = path.name.removesuffix(".exact.npz").rsplit("-", 1)
    program = Program.open(TESTBINS / machine / name)
    exact = ExactCounts.load(path)
    is_own = exact.from_image == exact.find_image(program.image.build_id, name)
    to_own = exact.to_image == exact.find_image(program.image.build_id, name)
    edges = exact_edges(image_addresses(exact.from_), image_addresses(exact.to), is_own, to_own,
                        exact.count)  # fmt: skip
    flow = replay(count(open_source(path), program.image.layout).counts, program)
    found = measure(flow, edges, program)
    # The first instruction and the last system call are no branches.
    assert (found.edges.overlap, found.edges.coverage) == pytest.approx((1, 1), abs=1e-5)
    assert (found.blocks.overlap, found.blocks.coverage) == pytest.approx((1, 1), abs=1e-5)
    assert (found.edges.seen, found.edges.unreal) == (found.edges.executed, 0)
    assert not flow.tallies.get("runs_valid/crosses_jump")


def source(tmp_path: Path, *rows: tuple[int, int, int, int, bool, int, int]) -> ExactSource:
    """Exact counts of the PIE (image 0) and of a library (image 1)."""
    names = ("from_image", "from", "to_image", "to", "taken", "kind", "count")
    columns = {name: np.array([row[i] for row in rows], np.uint64) for i, name in enumerate(names)}
    columns["mispredicted"] = columns["count"] // 2
    build_id = Program.open(PIE).image.build_id
    path = tmp_path / "exact.npz"
    ExactCounts.from_rows(columns, ("/x/interp.pie", "/lib/c"), (build_id, None), Totals()).save(
        path
    )
    return ExactSource(path)


def traces(source: ExactSource) -> dict[tuple[int, int, int, int], int]:
    counts = source.counts(Program.open(PIE).image.layout)
    keys = zip(counts.from_.tolist(), counts.to.tolist(), counts.end.tolist(),
               counts.known.tolist(), strict=True)  # fmt: skip
    return dict(zip(keys, counts.count.tolist(), strict=True))


def test_a_loop_is_entered_once_and_left_once(tmp_path: Path) -> None:
    """A call to 10, a loop from 20 back to 12 nine times, a return at 30."""
    found = traces(source(
        tmp_path, (0, 100, 0, 10, True, CALL, 1), (0, 20, 0, 12, True, COND, 9),
        (0, 20, 0, 22, False, COND, 1), (0, 30, 0, 102, True, RET, 1),
    ))  # fmt: skip
    runs = {key[1:3]: n for key, n in found.items() if key[3] == TO | END}
    assert runs == {(12, 20): 9, (10, 30): 1}
    branches = {key[:2]: n for key, n in found.items() if key[3] & BRANCH}
    assert branches == {(100, 10): 1, (20, 12): 9, (30, 102): 1}


def test_what_did_not_leave_ends_at_the_next_unconditional_branch(tmp_path: Path) -> None:
    """Of three arrivals one goes on by the jump at 20; two exited before it."""
    found = traces(source(tmp_path, (0, 90, 0, 10, True, CALL, 3), (0, 20, 0, 50, True, UNCOND, 1),
                          (0, 60, 0, 92, True, RET, 1)))  # fmt: skip
    assert {key[1:3]: n for key, n in found.items() if key[3] == TO | END} == {
        (10, 20): 1,
        (50, 60): 1,
    }


def test_branches_across_the_border_are_known_on_one_side(tmp_path: Path) -> None:
    found = traces(source(tmp_path, (0, 20, 1, 7, True, CALL, 4), (1, 9, 0, 22, True, RET, 4),
                          (1, 5, 1, 6, True, UNCOND, 8)))  # fmt: skip
    assert {key[3]: n for key, n in found.items()} == {FROM | BRANCH: 4, TO | BRANCH: 4}


def test_nothing_that_was_counted_is_a_profile_too(tmp_path: Path) -> None:
    assert traces(source(tmp_path)) == {}


def test_another_program_is_refused(tmp_path: Path) -> None:
    other = Program.open(TESTBINS / "x86-64" / "shapes.pie").image.layout
    with pytest.raises(InputError, match=r"holds no counts of .*shapes\.pie"):
        source(tmp_path).counts(other)


def test_the_file_is_known_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "renamed"
    path.write_bytes(FILES[0].read_bytes())
    assert format_of(path) is FORMAT
    saved = tmp_path / "saved"
    lbr2pgo.convert(FILES[-2], TESTBINS / "x86-64" / "shapes.pie",
                    outputs=[lbr2pgo.output("counts", saved)])  # fmt: skip
    assert format_of(saved) is not FORMAT


def test_a_damaged_file_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "cut"
    path.write_bytes(FILES[0].read_bytes()[:500])
    with pytest.raises(InputError, match="no file of exact counts") as refusal:
        open_source(path)
    assert "record --exact" in str(refusal.value.cure)
