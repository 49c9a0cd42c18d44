"""Samples of streams built by hand: each kind in its order, whatever else stands between."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from builders.streams import access, miss, sample, start

from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.recorders.plugin_stream import RecordKind, read_streams
from lbr2pgo.recorders.stream_samples import sample_batches

MIXED = [
    start(),
    sample(4, 0x1010, (0x1008, 0x1010, 2), (0x1020, 0x1000, 1)),
    access(5, 0x1001, 0x8000),
    access(6, 0x1002, 0x8010, is_store=True, tid=7, callers=(0x1500, 0x1600)),
    sample(7, 0x1000, tid=7, callers=(0x1500, 0x1600)),
    miss(8, 0x1040),
    sample(10, 0x1010, (1, 2, 3)),
    access(11, 0x1003, 0x8020),
]
KINDS = {RecordKind.SAMPLE: 0, RecordKind.MISS: 1, RecordKind.ACCESS: 2}


def read(directory: Path, most: int, *kinds: RecordKind) -> list[BranchStacks]:
    (directory / "5-0.lbr").write_bytes(b"".join(MIXED))
    (stream,) = read_streams(directory)
    return list(sample_batches(stream, most, {kind: KINDS[kind] for kind in kinds or KINDS}))


@pytest.mark.parametrize("most", [1, 2, 100])
def test_samples_keep_their_order_in_batches_of_any_size(most: int, tmp_path: Path) -> None:
    batches = read(tmp_path, most, RecordKind.SAMPLE)
    assert max(len(batch) for batch in batches) <= most
    assert [int(t) for batch in batches for t in batch.time] == [4, 7, 10]
    assert [int(t) for batch in batches for t in batch.tid] == [5, 7, 5]
    assert [int(t) for batch in batches for t in batch.ip] == [0x1010, 0x1000, 0x1010]
    assert np.concatenate([batch.entries for batch in batches]).tolist() == [
        [0x1008, 0x1010, 2], [0x1020, 0x1000, 1], [1, 2, 3],
    ]  # fmt: skip
    depths = [int(d) for batch in batches for d in np.diff(batch.offsets)]
    assert depths == [2, 0, 1]
    chains = [batch.chains.frames.tolist() for batch in batches if batch.chains is not None]
    assert [*chain.from_iterable(chains)] == [0x1010, 0x1000, 0x1500, 0x1600, 0x1010]


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_accesses_and_misses_are_samples_of_their_events(most: int, tmp_path: Path) -> None:
    """Also where giving room back on the disk has taken what stood before them."""
    batches = read(tmp_path, most)
    of_kind = [[b for b in batches if set(b.event.tolist()) == {event}] for event in range(3)]
    assert sum(map(len, of_kind)) == len(batches)
    assert [sum(map(len, each)) for each in of_kind] == [3, 1, 3]
    assert [int(ip) for batch in of_kind[1] for ip in batch.ip] == [0x1040]
    accesses = of_kind[2]
    assert [int(ip) for batch in accesses for ip in batch.ip] == [0x1001, 0x1002, 0x1003]
    assert [int(t) for batch in accesses for t in batch.tid] == [5, 7, 5]
    rows = np.concatenate([b.accesses for b in accesses if b.accesses is not None])
    assert rows[:, 0].tolist() == [0x8000, 0x8010, 0x8020]
    # perf: tools/perf/util/mem-events.c decodes 0x5080022 as LOAD, and 0x5080024 as STORE.
    assert [hex(source) for source in rows[:, 1].tolist()] == [
        "0x5080022",
        "0x5080024",
        "0x5080022",
    ]
    chains = [b.chains.frames.tolist() for b in accesses if b.chains is not None]
    assert [*chain.from_iterable(chains)] == [0x1001, 0x1002, 0x1500, 0x1600, 0x1003]
    depths = [int(n) for b in accesses if b.chains is not None for n in np.diff(b.chains.offsets)]
    assert depths == [1, 3, 1]


def test_kinds_that_nobody_asked_for_are_left_out(tmp_path: Path) -> None:
    assert [len(batch) for batch in read(tmp_path, 100, RecordKind.ACCESS)] == [3]
