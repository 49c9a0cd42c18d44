"""Biases planted in the samples of a walk whose branches are all known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from builders.recordings import STATIC, STATIC_ENTRY, recorded

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.counting.bias import Ends, correction
from lbr2pgo.counting.chosen_samples import CountingOptions
from lbr2pgo.counting.count import Counted, count
from lbr2pgo.model.address_space_events import SpaceEvent
from lbr2pgo.model.branch_stacks import BranchStacks, from_lists
from lbr2pgo.model.waterfall import check
from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.sources.base import Addresses, SourceInfo, SymbolResolver
from lbr2pgo.support.arrays import F64, I64
from lbr2pgo.support.sums import overlap

PLACES, STEPS, DEPTH, PERIOD = 60, 400_000, 32, 41
STICKY = 17
LAYOUT = ImageLayout("a.out", None, "x86-64", False, (Segment(0, 0, 0x10000, 0x10000, True),))


@dataclass(frozen=True)
class Samples:
    """Stacks in memory. Implements `StackSource`."""

    stacks: Sequence[BranchStacks]
    info = SourceInfo("walk", "walk", Addresses.IMAGE)

    def space_events(self) -> Sequence[SpaceEvent]:
        return ()

    def batches(self, resolve: SymbolResolver | None = None) -> Iterator[BranchStacks]:
        yield from self.stacks

    def health(self) -> Mapping[str, int]:
        return {}


def walk() -> I64:
    """Places that branches lead to, one after the other: near ones far more often than others."""
    random = np.random.default_rng(5)
    near = random.choice([1, 2, 3, 11], STEPS, p=[0.5, 0.3, 0.15, 0.05])
    return np.cumsum(near * random.choice([1, -1], STEPS, p=[0.6, 0.4])) % PLACES


WALK = walk()


def stacks_at(ends: I64) -> I64:
    """(n, DEPTH): places at the newest to the oldest entry of stacks that end there."""
    found: I64 = WALK[ends[:, np.newaxis] - np.arange(DEPTH)]
    return found


def source_of(places: I64, pieces: int = 3) -> Samples:
    """Samples in so many batches; branch k goes from 256 k to the one before in the stack."""
    size = -(-len(places) // pieces)
    return Samples([_batch(places[i : i + size]) for i in range(0, len(places), size)])


def _batch(places: I64) -> BranchStacks:
    n = len(places)
    entries = np.full((places.size, 3), (0, 0x40, 2), np.uint64)
    entries[:, 0] = 0x100 * places.reshape(-1) + 0x100
    offsets = np.arange(n + 1, dtype=np.int64) * DEPTH
    return replace(from_lists([[]] * n), entries=entries, offsets=offsets)


def counted(source: Samples, *, corrects: bool = True) -> Counted:
    return count(source, LAYOUT, CountingOptions(corrects_bias=corrects))


def error(found: Counted) -> float:
    """What is missing to 1 in the overlap with all branches of the walk."""
    branches = found.counts.branches()
    seen = np.zeros(PLACES, np.float64)
    seen[branches.from_.astype(np.int64) // 0x100 - 1] = branches.count
    truth: F64 = np.bincount(WALK, minlength=PLACES).astype(np.float64)
    return 1 - overlap(truth, seen)


def every(period: int = PERIOD) -> I64:
    return np.arange(DEPTH, STEPS, period)


def some_moments(times: float) -> I64:
    """Moments, so many times as likely behind every eighth place."""
    random = np.random.default_rng(2)
    likely = np.where(WALK[every(5)] % 8 == 0, 1.0, 1 / times)
    return every(5)[random.random(len(likely)) < likely]


def stuck(places: I64, part: float, entry: int) -> I64:
    """The stacks with one branch at an end of a part of them."""
    changed = places.copy()
    changed[np.random.default_rng(3).random(len(places)) < part, entry] = STICKY
    return changed


def test_samples_without_bias_stay_as_they_are() -> None:
    source = source_of(stacks_at(every()))
    plain, corrected = counted(source, corrects=False), counted(source)
    assert "samples_weighed" not in corrected.counts.tallies
    assert corrected.counts.tallies == plain.counts.tallies
    assert (corrected.counts.count == plain.counts.count).all()


@pytest.mark.parametrize("entry", [0, DEPTH - 1], ids=["newest", "oldest"])
@pytest.mark.parametrize("part", [0.1, 0.5])
def test_an_end_that_a_branch_sticks_to_is_left_out(entry: int, part: float) -> None:
    source = source_of(stuck(stacks_at(every()), part, entry))
    found = counted(source)
    assert found.counts.tallies["branches_in_image/dropped"] == len(every())
    assert "samples_weighed" not in found.counts.tallies
    unbiased = error(counted(source_of(stacks_at(every())), corrects=False))
    assert error(found) < unbiased + 0.001
    assert error(counted(source, corrects=False)) > error(found) + 0.01 * part


@pytest.mark.parametrize("times", [4.0, 20.0])
def test_moments_that_come_too_often_are_weighed_less(times: float) -> None:
    source = source_of(stacks_at(some_moments(times)))
    before, found = counted(source, corrects=False), counted(source)
    assert error(found) < error(before) / 2
    samples = before.counts.tallies["samples_mapped"]
    assert found.counts.tallies["samples_mapped"] == samples
    assert abs(found.counts.tallies["samples_weighed"] / samples - 1) < 0.05
    check(found.counts.tallies)


def test_both_at_once_are_corrected() -> None:
    source = source_of(stuck(stacks_at(some_moments(10)), 0.2, 0))
    assert error(counted(source)) < error(counted(source, corrects=False)) / 2


@pytest.mark.parametrize("pieces", [1, 7])
def test_it_does_not_matter_how_samples_are_batched(pieces: int) -> None:
    places = stacks_at(some_moments(8))
    one, other = counted(source_of(places, pieces)), counted(source_of(places))
    assert one.counts.tallies == other.counts.tallies
    assert (one.counts.count == other.counts.count).all()


def test_too_few_samples_show_no_bias() -> None:
    source = source_of(stacks_at(some_moments(8))[:40])
    assert "samples_weighed" not in counted(source).counts.tallies


def test_a_recording_is_corrected_on_its_way_to_a_profile(tmp_path: Path) -> None:
    other = (0x22A8B8, 0x22A8C0, 2)
    recording = tmp_path / "perf.data"
    recording.write_bytes(recorded([[other, *[STATIC_ENTRY] * 7]] * 200))
    chosen = CountingOptions(corrects_bias=True)
    done = convert(ConvertOptions((recording,), STATIC, counting=chosen))
    assert done.tallies["branches_in_image/dropped"] == 200
    assert done.counts.branches().from_.tolist() == [STATIC_ENTRY[0]]


def test_no_stack_counts_for_more_or_less_than_sixteen_times_as_much() -> None:
    """All stacks begin with a branch that ends none, and end with one that begins none."""
    begins, ends = np.zeros(1, np.uint64), np.ones(1, np.uint64)
    found = correction(iter([Ends(begins, begins, ends, ends, np.array([100_000], np.uint64))]))
    assert found.branch is not None
    assert found.factor is not None
    assert found.branch.tolist() == [0, 1]
    assert (found.factor / 2**16).tolist() == [1 / 16, 16]
