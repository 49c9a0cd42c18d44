from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from builders.evidence import evidence, gather, gather_sources, with_limits
from builders.recordings import RECORDED, TESTBINS
from builders.sources import Sample

from lbr2pgo.analyses.outcomes import estimate, outcomes
from lbr2pgo.counting.place import ImageFacts
from lbr2pgo.counting.sample_reading import SampleReading
from lbr2pgo.model.address_space_events import ANY_PID
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.model.exact_counts import ExactCounts
from lbr2pgo.program.program import Program
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import StackSource

BACK, LONG, SHORT = (0x1016, 0x1005), (0x1012, 0x1015), (0x1009, 0x1015)
FORWARD = (0x1006, 0x1010)


def rounds(*ways: str) -> Sample:
    """Rounds of the loop, newest first: `l` takes the forward branch, `s` falls through."""
    parts = {"l": [LONG, FORWARD], "s": [SHORT]}
    stack = [entry for way in ways for entry in (BACK, *parts[way])]
    return Sample([*stack, BACK])


def by_address(table) -> dict[int, dict]:
    return {row["address"]: row for row in table.records()}


def test_taken_and_not_taken_are_counted_over_fall_throughs() -> None:
    table = outcomes(evidence(rounds("l", "s", "s", "s")))[0]
    row = by_address(table)[0x1006]
    assert (row["taken"], row["not_taken"], row["probability"]) == (1, 3, 0.25)
    assert row["probability_low"] < 0.25 < row["probability_high"]


def test_the_oldest_entry_does_not_count() -> None:
    """Had the oldest back edge not been taken, it would not be in the stack."""
    row = by_address(outcomes(evidence(rounds("s", "s")))[0])[0x1016]
    assert row["taken"] == 2


def test_hottest_first() -> None:
    table = outcomes(evidence(rounds("l", "s", "s")))[0]
    assert table.column("address") == (0x1006, 0x1016)


def test_outcomes_of_one_sample_count_for_less() -> None:
    found = evidence(*(rounds(*"l" * 5) for _ in range(10)), *(rounds(*"s" * 5) for _ in range(10)))
    alike = by_address(outcomes(found)[0])[0x1006]
    apart = by_address(outcomes(with_limits(found, has_counts=True))[0])[0x1006]
    assert alike["probability"] == apart["probability"] == 0.5
    assert alike["probability_low"] < apart["probability_low"]
    # Twenty samples that each went one way are twenty observations.
    assert alike["probability_low"] == pytest.approx(0.299, abs=0.001)


def test_branches_worth_inverting_are_forward_and_surely_mostly_taken() -> None:
    mostly = evidence(*(rounds("l", "l", "s") for _ in range(100)))
    (row,) = outcomes(mostly)[2].records()
    assert (row["address"], row["saved"]) == (0x1006, 100)
    rarely = evidence(*(rounds("l", "s", "s") for _ in range(100)))
    assert outcomes(rarely)[2].rows == ()
    unsure = evidence(rounds("l", "l", "s"))
    assert outcomes(unsure)[2].rows == ()


def test_backward_branches_are_never_inverted() -> None:
    table = outcomes(evidence(*(rounds("s", "s") for _ in range(100))))[2]
    assert 0x1016 not in table.column("address")


def test_a_filtered_recording_knows_no_outcomes_and_says_why() -> None:
    tables = outcomes(evidence(rounds("l", "s"), filters=1 << 10 | 1))
    assert all(not table.rows for table in tables)
    assert all(any("filtered" in note for note in table.notes) for table in tables)


def test_one_function_only() -> None:
    found = evidence(rounds("l", "s"))
    other = replace(found, function=found.program.regions.by_name("g"))
    assert outcomes(other)[0].rows == ()


def test_two_branches_on_one_line_are_kept_apart(tmp_path: Path, tool, run) -> None:
    """`a || b` is two branches: one always, one never taken."""
    source = tmp_path / "line.c"
    source.write_text(
        "__attribute__((noinline)) int f(int a, int b)\n"
        "{ if (a == 7 || b == 9) return __builtin_ia32_rdtsc(); return 3; }\n"
        "int main(int n, char **v) { return f(n, n); }\n"
    )
    binary = tmp_path / "line"
    run(tool("gcc"), "-O1", "-g", "-o", binary, source)
    found = _walk_line(binary)
    table = outcomes(found)[1]
    rows = [row for row in table.records() if row["line"] == "line.c:2"]
    assert [row["branch"] for row in rows] == ["1 of 2", "2 of 2"]
    assert rows[0]["address"] != rows[1]["address"]
    assert {row["probability"] for row in rows} == {0.0, 1.0}


def _walk_line(binary: Path):
    """Enter f, fall through its first branch, take the second, come back in."""
    from builders.evidence import gather_sources, source

    from lbr2pgo.program.code.instructions import Kind
    from lbr2pgo.program.program import Program

    program = Program.open(binary)
    start = program.address_of("f")
    code = program.instructions_for(np.array([start], np.uint64))
    rows = np.flatnonzero((code.kind == Kind.COND) & (code.address >= start))[:2]
    second = int(rows[1])
    taken = (int(code.address[second]), int(code.target[second]))
    sample = Sample([taken, (0x7FFF0000, start)])
    return gather_sources([source(*[sample] * 5)], program).evidence


@pytest.mark.parametrize(("machine", "name"), RECORDED)
def test_intervals_hold_the_exact_probability_as_often_as_they_promise(
    machine: str, name: str
) -> None:
    recordings, binary = TESTBINS / "recordings", TESTBINS / machine / name
    found = estimate(gather((recordings / f"{machine}-{name}.perf.data",), binary).evidence)
    exact = _exact(recordings / f"{machine}-{name}.exact.npz", name)
    inside = [
        low - 1e-9 <= exact[address] <= high + 1e-9
        for address, low, high in zip(
            found.address.tolist(), found.low.tolist(), found.high.tolist(), strict=True
        )
    ]
    assert len(inside) >= 20
    assert sum(inside) >= 0.95 * len(inside)


@dataclass
class _Shallow:
    """A source whose stacks keep so many of their newest entries."""

    source: StackSource
    depth: int

    def __getattr__(self, name: str) -> object:
        return getattr(self.source, name)

    def batches(self, resolve: object = None) -> Iterator[BranchStacks]:
        for batch in self.source.batches(resolve):
            yield batch.cut(self.depth)


@pytest.mark.parametrize("depth", [4, 8, 16, 32])
@pytest.mark.parametrize("name", ["interp.pie", "shapes.pie"])
def test_intervals_hold_at_any_depth(depth: int, name: str) -> None:
    recording = TESTBINS / "recordings" / f"x86-64-{name}.perf.data"
    source = _Shallow(open_source(recording), depth)
    program = Program.open(TESTBINS / "x86-64" / name)
    found = estimate(gather_sources([source], program).evidence)
    exact = _exact(Path(str(recording).replace(".perf.data", ".exact.npz")), name)
    truth = np.array([exact[address] for address in found.address.tolist()])
    inside = (found.low - 1e-9 <= truth) & (truth <= found.high + 1e-9)
    assert inside.mean() >= 0.95, (inside.sum(), len(inside))


def _exact(path: Path, name: str) -> dict[int, float]:
    """Exact probability of every conditional branch of an image."""
    exact = ExactCounts.load(path)
    image = exact.find_image(None, name)
    assert image is not None
    rows = np.flatnonzero(exact.of_image(image))
    address, place = np.unique(exact.from_[rows], return_inverse=True)
    taken = np.bincount(place, weights=exact.count[rows] * exact.taken[rows])
    count = np.bincount(place, weights=exact.count[rows])
    return dict(zip(address.tolist(), (taken / count).tolist(), strict=True))


@pytest.mark.slow
def test_intervals_hold_on_sqlite(corpus) -> None:
    binary = corpus("sqlite/sq.zst")
    recording = corpus("sqlite/sq.perf.data.zst")
    evidence = gather((recording,), binary).evidence
    found = estimate(evidence)
    source, target, count = np.fromfile(corpus("sqlite/sq.exact.zst"), "<u8").reshape(-1, 3).T
    spaces = SampleReading(open_source(recording), ImageFacts(evidence.program.image.layout)).spaces
    assert spaces.spaces_of(np.array([ANY_PID], np.int32), np.zeros(1, np.uint64)).tolist() == [0]
    image, inside = spaces.to_image(0, np.ascontiguousarray(source))
    bias = spaces.pieces[0][0].bias
    code = evidence.program.instructions_for(np.unique(image[inside]))
    ran: Counter[int] = Counter()
    taken: Counter[int] = Counter()
    at = code.index_of(image[inside])
    rows = zip(
        image[inside].tolist(),
        target[inside].tolist(),
        count[inside].tolist(),
        code.end[at].tolist(),
        code.target[at].tolist(),
        strict=True,
    )
    for address, to, times, following, jump in rows:
        # This emulator logged a jump to itself where it had begun an instruction in vain.
        times = times if to - bias in (following, jump) else 0
        ran[address] += times
        taken[address] += times if to - bias != following else 0
    exact = np.array([taken[address] / ran[address] for address in found.address.tolist()])
    holds = (found.low - 1e-9 <= exact) & (exact <= found.high + 1e-9)
    assert len(holds) > 2000
    assert holds.mean() >= 0.95
    # At the end of a page, and logged in vain as often as it ran: three in four if that counted.
    (page_end,) = np.flatnonzero(found.address == 0x77FFE)
    assert exact[page_end] == pytest.approx(0.485, abs=0.001)
    assert found.probability[page_end] == pytest.approx(exact[page_end], abs=0.03)
    # Not because they hold everything: those of the 500 hottest branches are narrow.
    hottest = np.argsort(-found.count.astype(np.int64))[:500]
    assert np.median((found.high - found.low)[hottest]) < 0.01
