"""Samples by slices of time, however they come."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from builders.sources import BASE, CODE, LAYOUT, Sample, batch_of, mapping

from lbr2pgo.counting.activity import SLICES, Activity, ActivityCounter
from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.find_image import ImageMatch
from lbr2pgo.counting.mapped_files import MappedFiles
from lbr2pgo.model.space_event_log import SpaceEventLog
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64

LIBRARY = 0x6F0000000000
EVENTS = SpaceEventLog([
    mapping(),
    mapping(base=LIBRARY, path="/lib/libz.so.1", build_id="bb" * 20),
])  # fmt: skip


def functions(addresses: PlacedAddresses) -> I64:
    """Four functions of 16 bytes, and no other code."""
    number = ((addresses - np.uint64(CODE)) // np.uint64(16)).astype(np.int64)
    return np.where(number < 4, number, -1)


def counter() -> ActivityCounter:
    spaces = AddressSpaces(EVENTS, LAYOUT, ImageMatch((LAYOUT.path,), "path"))
    one = batch_of([sample(1, 0)])
    assert spaces.spaces_of(one.pid, one.time).tolist() == [0]
    return ActivityCounter(spaces, MappedFiles(EVENTS), functions)


def counted(*batches: list[Sample]) -> ActivityCounter:
    found = counter()
    for samples in batches:
        found.add(batch_of(samples), np.zeros(len(samples), np.int64))
    return found


def cells(activity: Activity | None) -> Counter[tuple[int, str]]:
    """Samples by the time at which their slice begins, and by function or file."""
    assert activity is not None
    names = [
        file or str(function)
        for function, file in zip(activity.function.tolist(), activity.file, strict=True)
    ]
    return Counter(
        {
            (activity.start + row * activity.width, names[column]): int(n)
            for (row, column), n in np.ndenumerate(activity.samples)
            if n
        }
    )


def sample(time: int, function: int, weight: int = 1) -> Sample:
    at = BASE + CODE + 16 * function
    return Sample([(BASE + CODE, at), (at, BASE + CODE)], time=time, weight=weight)


def test_the_newest_branch_tells_where_a_sample_was_and_else_its_instruction() -> None:
    found = counted(
        [
            sample(1, 2),
            Sample((), time=1, ip=BASE + CODE + 16),
            Sample([(BASE + CODE, LIBRARY + CODE)], time=1),
            Sample([(BASE + CODE, BASE + CODE + 64)], time=1),
            Sample((), time=1),
        ]
    ).result()
    assert cells(found) == {(1, "2"): 1, (1, "1"): 1, (1, "libz.so.1"): 1, (1, "prog"): 1}


def test_samples_of_other_processes_are_in_none() -> None:
    found = counter()
    found.add(batch_of([sample(1, 0), sample(2, 0)]), np.array([-1, 0]))
    assert cells(found.result()) == {(2, "0"): 1}
    found = counter()
    found.add(batch_of([sample(1, 0)]), np.array([-1]))
    assert found.result() is None


@pytest.mark.parametrize("span", [1, SLICES - 1, SLICES, 1000, 10**12])
def test_slices_are_as_narrow_as_their_number_lets_them(span: int) -> None:
    first = 12_345_678_901
    found = counted([sample(first, 0), sample(first + span, 1)]).result()
    assert found is not None
    slices = ((first + span) // found.width) - first // found.width + 1
    assert found.samples.shape == (slices, 2)
    assert slices <= SLICES
    assert slices > SLICES // 2 - 1 or found.width == 1
    assert found.start % found.width == 0
    assert (found.first, found.last, found.begin(0)) == (first, first + span, first)


@pytest.mark.parametrize("seed", range(5))
def test_order_batches_and_who_counts_change_nothing(seed: int) -> None:
    chance = random.Random(seed)
    samples = [
        sample(chance.randrange(10 ** chance.randrange(1, 13)), chance.randrange(4), weight)
        for weight in range(1, 300)
    ]
    samples += [Sample([(BASE, LIBRARY + CODE)], time=chance.randrange(10**9)) for _ in range(9)]
    wanted = counted(samples).result()
    chance.shuffle(samples)
    parts = [samples[:50], samples[50:51], samples[51:]]
    one, other = counted(parts[0]), counted(*parts[1:])
    one.merge(other)
    one.merge(counter())
    for found in (counted(*parts).result(), one.result()):
        assert cells(found) == cells(wanted)
        assert (found.first, found.last, found.width) == (wanted.first, wanted.last, wanted.width)


def test_weights_count() -> None:
    assert cells(counted([sample(5, 1, 7), sample(5, 1, 2)]).result()) == {(5, "1"): 9}


def test_a_table_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="2 functions"):
        Activity(0, 1, 0, 1, np.zeros((2, 3), np.uint64), np.zeros(2, np.int64), ("", ""))
