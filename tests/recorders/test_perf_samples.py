from __future__ import annotations

import numpy as np
import pytest

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.model.branch_stacks import CallChains, from_lists
from lbr2pgo.recorders.perf_samples import MarkedChains, SampleLayout

PLAIN = SampleLayout(with_cpu=False, with_callchain=False, with_hw_index=False)


def words(layout: SampleLayout, stacks: list[list[tuple[int, int, int]]]) -> list[int]:
    n = len(stacks)
    made = layout.words(
        from_lists(stacks, pid=7), sample_ids=np.ones(n, np.uint64),
        period=np.full(n, 1009, np.uint64), cpu=None, callchains=None, hw_index=None,
    )  # fmt: skip
    return made.tolist()


def sizes(records: list[int]) -> list[int]:
    """Bytes of each record, as their headers say."""
    found, at = [], 0
    while at < len(records):
        found.append(records[at] >> 48)
        at += found[-1] // 8
    return found


def test_a_record_holds_its_fields_in_the_kernel_s_order() -> None:
    header, sample_id, ip, who, time, period, depth, *entry = words(PLAIN, [[(0x10, 0x20, 2)]])
    assert header & 0xFFFF_FFFF == abi.RECORD_SAMPLE
    assert (sample_id, ip, time, period, depth, entry) == (1, 0, 0, 1009, 1, [0x10, 0x20, 2])
    assert who & 0xFFFF_FFFF == 7


@pytest.mark.parametrize("with_cpu", [False, True])
@pytest.mark.parametrize("with_callchain", [False, True])
@pytest.mark.parametrize("with_hw_index", [False, True])
def test_records_are_as_long_as_they_say(
    with_cpu: bool, with_callchain: bool, with_hw_index: bool
) -> None:
    layout = SampleLayout(with_cpu, with_callchain, with_hw_index)
    made = words(layout, [[(1, 2, 0)] * depth for depth in (0, 3, 1)])
    more = with_cpu + with_callchain + with_hw_index
    assert sizes(made) == [8 * (7 + more + 3 * depth) for depth in (0, 3, 1)]
    assert sum(sizes(made)) == 8 * len(made)


def test_a_stack_that_no_record_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="sample 1 needs 72056 bytes"):
        words(PLAIN, [[], [(1, 2, 0)] * 3000])


def test_user_frames_are_marked_as_the_kernel_marks_them() -> None:
    chains = CallChains(np.array([1, 2, 3], np.uint64), np.array([0, 2, 2, 3]))
    marked = MarkedChains.of_user(chains)
    user = abi.CONTEXT_USER
    assert marked.addresses.tolist() == [user, 1, 2, user, user, 3]
    assert marked.offsets.tolist() == [0, 3, 4, 6]
