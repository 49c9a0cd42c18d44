"""The record walk against the same steps in plain Python, on records and on noise."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.sources.perf_data import _perf_records as kernel
from lbr2pgo.sources.perf_data._perf_records import Layouts, Room

SPECIAL_TYPES = (81, 83, 66, 71)
KINDS = st.sampled_from([1, 3, 9, 9, 9, 68, 81, 0, 40, 2**31, 71])


def record(kind: int, body: bytes, size: int | None = None) -> bytes:
    return struct.pack("<IHH", kind, 0, 8 + len(body) if size is None else size) + body


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Records, some with a wrong size, cut anywhere."""
    pieces = [
        record(draw(KINDS), draw(st.binary(max_size=6)).ljust(8, b"\1"), draw(SIZES))
        for _ in range(draw(st.integers(0, 8)))
    ]
    stream = b"".join(pieces)
    return stream[: len(stream) - draw(st.integers(0, min(20, len(stream))))]


SIZES = st.sampled_from([None, None, None, None, 0, 7, 8, 24, 60_000])


def array(raw: bytes) -> kernel.Bytes:
    return np.frombuffer(raw, np.uint8)


def plain_whole_records(raw: bytes) -> tuple[list[int], int, int]:
    """Places of the whole records, where they stop, and why."""
    at, places = 0, []
    while at + 8 <= len(raw):
        kind, _, size = struct.unpack_from("<IHH", raw, at)
        if kind in SPECIAL_TYPES:
            return places, at, kernel.SPECIAL
        if size < 8:
            return places, at, kernel.BAD
        if at + size > len(raw):
            break
        places.append(at)
        at += size
    return places, at, kernel.PARTIAL


@settings(max_examples=300, deadline=None)
@given(raw=streams() | st.binary(max_size=60))
def test_whole_records_end_where_they_end_in_python(raw: bytes) -> None:
    _, at, why = plain_whole_records(raw)
    assert kernel.whole_records(array(raw), 0) == (at, why)


@settings(max_examples=300, deadline=None)
@given(raw=streams(), room=st.integers(1, 9), wanted=st.sets(st.sampled_from([1, 9, 127])))
def test_finds_the_wanted_records_and_counts_all(raw: bytes, room: int, wanted: set[int]) -> None:
    places, end, _ = plain_whole_records(raw)
    kinds = [min(struct.unpack_from("<I", raw, at)[0], 127) for at in places]
    wanted_kinds = np.isin(np.arange(kernel.TYPE_COUNTS), list(wanted)).astype(np.uint8)
    counts = np.zeros(kernel.TYPE_COUNTS, np.int64)
    found = np.empty(room, np.int64)
    at, collected = 0, []
    while at < end:
        at, n = kernel.find_records(array(raw[:end]), at, wanted_kinds, counts, found)
        collected += found[:n].tolist()
    assert collected == [place for place, kind in zip(places, kinds, strict=True) if kind in wanted]
    assert counts.tolist() == np.bincount(kinds, minlength=kernel.TYPE_COUNTS).tolist()


def plain_plausible(raw: bytes, at: int) -> bool:
    for _ in range(4):
        if at == len(raw):
            return True
        if at + 8 > len(raw):
            return False
        kind, _, size = struct.unpack_from("<IHH", raw, at)
        if kind not in {*range(1, 23), *range(64, 87)} or size < 8 or (size % 8 and kind != 81):
            return False
        at += size
    return at <= len(raw)


@settings(max_examples=300, deadline=None)
@given(noise=st.binary(max_size=40), raw=streams(), start=st.integers(0, 10))
def test_finds_the_first_place_where_records_may_begin(
    noise: bytes, raw: bytes, start: int
) -> None:
    data = noise + raw
    places = range(start, len(data) - 7)
    expected = next((at for at in places if plain_plausible(data, at)), -1)
    assert kernel.next_plausible(array(data), start) == expected


def layouts(*rows: list[int], id_at: int = 0, ids: list[int] | None = None) -> Layouts:
    known = sorted(ids or [])
    events = [(ids or []).index(i) for i in known]
    return Layouts(
        np.array(rows, np.int64), id_at, np.array(known, np.uint64), np.array(events, np.int32)
    )


STACK_ONLY = [-1, -1, -1, -1, -1, 1, 1 << 11, 0, 0, 0, 0, 0]
"""A layout with nothing but the branch stack."""


def stack_record(*entries: tuple[int, int, int]) -> bytes:
    words = [len(entries), *(word for entry in entries for word in entry)]
    return record(9, struct.pack(f"<{len(words)}Q", *words))


def test_stops_before_the_sample_that_does_not_fit_and_goes_on_there() -> None:
    one, two = stack_record((1, 2, 3)), stack_record((4, 5, 6), (7, 8, 9))
    raw = array(one + two + one)
    tallies = np.zeros(kernel.TALLIES, np.int64)
    end = len(one) + len(two)
    found = []
    for start, size, stop in (
        (0, (5, 2), len(one)),
        (len(one), (1, 9), end),
        (end, (5, 9), len(raw)),
    ):
        out = Room(*size)
        assert kernel.read_samples(raw, start, 0, layouts(STACK_ONLY), out, tallies) == stop
        assert len(out) == 1
        found.append(out.columns()["entries"].tolist())
    assert found == [[[1, 2, 3]], [[4, 5, 6], [7, 8, 9]], [[1, 2, 3]]]
    assert not tallies.any()


def test_stops_before_the_call_chain_that_does_not_fit_and_goes_on_there() -> None:
    layout = [-1, -1, -1, -1, -1, 1, 1 << 5, 0, 0, 0, 1, 0]
    sizes = (1, 2, 0, 3)
    raw = array(b"".join(record(9, struct.pack(f"<{n + 1}Q", n, *range(n))) for n in sizes))
    tallies = np.zeros(kernel.TALLIES, np.int64)
    at, found = 0, []
    while at < len(raw):
        out = Room(9, 0, 3)
        at = kernel.read_samples(raw, at, 0, layouts(layout), out, tallies)
        found.append([column.tolist() for column in out.call_chains() or ()])
    assert found == [[[0, 0, 1], [0, 1, 3, 3]], [[0, 1, 2], [0, 3]]]
    assert not tallies.any()


def test_fields_that_are_not_recorded_have_their_neutral_values() -> None:
    out = Room(2, 2)
    raw = array(stack_record((1, 2, 3)))
    tallies = np.zeros(kernel.TALLIES, np.int64)
    kernel.read_samples(raw, 0, 5000, layouts(STACK_ONLY), out, tallies)
    found = out.columns()
    assert [found[name].tolist() for name in ("ip", "pid", "tid", "time", "event")] == [
        [0], [-1], [-1], [5000], [0],
    ]  # fmt: skip
    assert found["counters"] is None


@pytest.mark.parametrize(
    ("sample_id", "event"), [(0, 0), (2**64 - 1, 1), (7, 0), (8, None), (2**63, None)]
)
def test_looks_the_event_up_by_id(sample_id: int, event: int | None) -> None:
    rows = [[-1, -1, -1, -1, -1, 2, 0, 0, 0, 0, 0, 0]] * 2
    out = Room(1, 1)
    raw = array(record(9, struct.pack("<Q", sample_id)))
    tallies = np.zeros(kernel.TALLIES, np.int64)
    table = layouts(*rows, id_at=1, ids=[7, 2**64 - 1])
    assert kernel.read_samples(raw, 0, 0, table, out, tallies) == len(raw)
    assert tallies[kernel.UNKNOWN_EVENT] == (event is None)
    assert out.columns()["event"].tolist() == [event] * (event is not None)


@settings(max_examples=300, deadline=None)
@given(
    body=st.binary(max_size=80),
    size=st.integers(8, 88),
    sample_type=st.integers(0, 2**16 - 1),
    registers=st.integers(0, 64),
    read_format=st.integers(0, 31),
    hw_index=st.booleans(),
    counters=st.booleans(),
    chain=st.booleans(),
)
def test_no_sample_is_read_past_its_own_end(
    body: bytes,
    size: int,
    sample_type: int,
    registers: int,
    read_format: int,
    hw_index: bool,
    counters: bool,
    chain: bool,
) -> None:
    """What lies behind a record must not change what is read from it."""
    flags = int(hw_index), int(counters), int(chain)
    row = [1, 2, -1, 2, 2, 3, sample_type, read_format, *flags, registers]
    raw = record(9, body, size=min(size, 8 + len(body)))[: min(size, 8 + len(body))]
    found = []
    for behind in (b"\0", b"\xff"):
        guard = record(14, behind * 400)
        out = Room(1, 20, 20 * chain, has_counters=counters, has_cpus=True, has_accesses=True)
        tallies = np.zeros(kernel.TALLIES, np.int64)
        end = kernel.read_samples(array(raw + guard), 0, 0, layouts(row), out, tallies)
        assert end == len(raw + guard)
        assert len(out) + tallies[: kernel.DEFERRED_CHAIN].sum() == 1
        columns = {k: v.tolist() for k, v in out.columns().items() if v is not None}
        chains = [column.tolist() for column in out.call_chains() or ()]
        found.append((tallies.tolist(), columns, chains))
    assert found[0] == found[1]


ACCESS_TYPE = 1 << 3 | 1 << 11 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 15
"""Address, branch stack, registers, stack, weight and data source."""


@pytest.mark.parametrize("entries", [(), ((1, 2, 3),)])
@pytest.mark.parametrize("registers", [(0,), (2, 11, 12)])
@pytest.mark.parametrize("stack", [(0,), (16, 7, 8, 16)])
def test_the_data_source_stands_behind_what_varies(
    entries: tuple[tuple[int, int, int], ...], registers: tuple[int, ...], stack: tuple[int, ...]
) -> None:
    """As kernel/events/core.c, perf_output_sample, writes it."""
    layout = [-1, -1, -1, -1, 1, 2, ACCESS_TYPE, 0, 0, 0, 0, 2]
    words = [0x8000, len(entries), *(w for each in entries for w in each), *registers, *stack]
    words += [99, 0x5080022]
    raw = array(record(9, struct.pack(f"<{len(words)}Q", *words)))
    out = Room(1, 1, has_accesses=True)
    tallies = np.zeros(kernel.TALLIES, np.int64)
    kernel.read_samples(raw, 0, 0, layouts(layout), out, tallies)
    assert not tallies.any()
    assert out.columns()["accesses"].tolist() == [[0x8000, 0x5080022]]
    short = array(record(9, struct.pack(f"<{len(words) - 1}Q", *words[:-1])))
    kernel.read_samples(short, 0, 0, layouts(layout), Room(1, 1, has_accesses=True), tallies)
    assert tallies[kernel.BAD_ACCESS] == 1


@pytest.mark.parametrize("raw", [record(9, b"", size=4), record(9, b"", size=16), b"\t"])
def test_what_is_no_whole_record_is_refused(raw: bytes) -> None:
    """Chunks hold whole records only: anything else must not be walked."""
    tallies, counts = np.zeros(kernel.TALLIES, np.int64), np.zeros(kernel.TYPE_COUNTS, np.int64)
    wanted, found = np.ones(kernel.TYPE_COUNTS, np.uint8), np.zeros(9, np.int64)
    with pytest.raises(IndexError, match="no whole record at byte 0"):
        kernel.read_samples(array(raw), 0, 0, layouts(STACK_ONLY), Room(1, 1), tallies)
    with pytest.raises(IndexError, match="no whole record at byte 0"):
        kernel.find_records(array(raw), 0, wanted, counts, found)


def test_fixed_fields_stand_before_the_others() -> None:
    with pytest.raises(ValueError, match="event 1 has fixed fields behind"):
        layouts(STACK_ONLY, [1, 2, -1, 3, -1, 3, 1 << 11, 0, 0, 0, 0, 0])
