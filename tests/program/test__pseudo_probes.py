"""Decoding of pseudo probes against a plain encoder."""

from __future__ import annotations

import numpy as np
import pytest
from builders.pseudo_probes import Encoder, Function, Probe, descriptor
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.program._pseudo_probes import (
    DESCRIPTOR_COLUMNS,
    RECORD_COLUMNS,
    read_descriptors,
    read_records,
    survey_records,
)

GUIDS = st.integers(0, 2**64 - 1)
ADDRESSES = st.integers(0x1000, 0x4000) | st.integers(0, 2**63 - 1)
PROBES = st.builds(
    Probe,
    index=st.integers(1, 300) | st.just(2**32 - 1),
    address=ADDRESSES,
    kind=st.integers(0, 15),
    attributes=st.integers(0, 1),
    discriminator=st.integers(0, 3) | st.just(2**32 - 1),
)
FUNCTIONS = st.recursive(
    st.builds(Function, GUIDS, st.lists(PROBES, max_size=4)),
    lambda inner: st.builds(
        Function, GUIDS, st.lists(PROBES, max_size=4),
        st.lists(st.tuples(st.integers(1, 2**32 - 1), inner), max_size=3),
    ),
    max_leaves=6,
)  # fmt: skip
RECORDS = st.lists(st.tuples(FUNCTIONS, ADDRESSES, st.none() | GUIDS), max_size=4)


def u8(data: bytes):
    return np.frombuffer(data, np.uint8)


def encoded(records) -> tuple[bytes, list[int]]:
    """The section, and where each record ends."""
    encoder, ends = Encoder(), []
    for function, start, split in records:
        encoder.record(function, start, split=split)
        ends.append(len(encoder.data))
    return encoder.data, ends


def flat(function: Function, parent: int, site: int, nodes: list, probes: list, depth: int = 0):
    """Functions and probes as the section orders them; how deep functions nest."""
    number = len(nodes)
    nodes.append((function.guid, parent, site))
    for probe in function.probes:
        attributes = probe.attributes | 4 * (probe.discriminator > 0)
        fields = (probe.index, probe.kind, attributes, probe.discriminator)
        probes.append((probe.address, number, *fields))
    inner = [
        flat(callee, number, call, nodes, probes, depth + 1) for call, callee in function.inlined
    ]
    return max([depth, *inner])


@settings(max_examples=300, deadline=None)
@given(RECORDS)
def test_what_was_encoded_is_decoded(records) -> None:
    data, ends = encoded(records)
    found, end = survey_records(u8(data))
    assert end == len(data)
    nodes, probes, depths, starts = [], [], [], []
    for row, (function, start, split) in enumerate(records):
        nodes_before, probes_before = len(nodes), len(probes)
        depths.append(flat(function, -1, 0, nodes, probes))
        addresses = [probe[0] for probe in probes[probes_before:]]
        low, high = (f(addresses) - start if addresses else 0 for f in (min, max))
        assert found[row].tolist() == [
            ends[row - 1] if row else 0, function.guid, function.guid if split is None else split,
            0, 0, 0, len(nodes) - nodes_before, len(addresses), low % 2**64, high % 2**64,
            depths[-1],
        ]  # fmt: skip
        starts.append(start)
    got_nodes, got_probes = read_records(
        u8(data), found[:, 0].astype(np.int64), np.array(starts, np.uint64), len(nodes),
        len(probes), max(depths, default=0),
    )  # fmt: skip
    assert list(zip(*(column.tolist() for column in got_nodes), strict=True)) == nodes
    assert list(zip(*(column.tolist() for column in got_probes), strict=True)) == probes


@settings(max_examples=15, deadline=None)
@given(RECORDS)
def test_a_section_that_is_cut_keeps_its_whole_records(records) -> None:
    data, ends = encoded(records)
    for size in range(len(data)):
        found, end = survey_records(u8(data[:size]))
        assert len(found) == sum(stop <= size for stop in ends)
        assert end == max([stop for stop in ends if stop <= size], default=0)


@settings(max_examples=200, deadline=None)
@given(RECORDS)
def test_old_compilers_wrote_the_first_address_whole(records) -> None:
    encoder, expected = Encoder(), []
    carried = 0
    for function, start, _ in records:
        encoder.record(function, start, is_absolute=True)
        probes: list = []
        flat(function, -1, 0, [], probes)
        addresses = [probe[0] for probe in probes]
        expected.append(addresses[0] if addresses else carried)
        carried = addresses[-1] if addresses else carried
    found, end = survey_records(u8(encoder.data))
    assert end == len(encoder.data)
    has_probes = found[:, 7] > 0
    assert found[has_probes, 4].all()
    assert not found[:, 5].any()
    wanted = np.array(expected, np.uint64)
    assert found[has_probes, 3].tolist() == wanted[has_probes].tolist()


def test_records_after_the_first_absolute_one_go_on_where_the_last_one_ended() -> None:
    encoder = Encoder()
    encoder.record(Function(1, [Probe(1, 0x1000), Probe(2, 0x1010)]), 0, is_absolute=True)
    encoder.record(Function(2, [Probe(1, 0x1020)]), 0x1010)
    found, _ = survey_records(u8(encoder.data))
    assert found[:, 3].tolist() == [0x1000, 0x1010]
    _, probes = read_records(
        u8(encoder.data), found[:, 0].astype(np.int64), found[:, 3].copy(), 2, 3, 0
    )
    assert probes[0].tolist() == [0x1000, 0x1010, 0x1020]


@pytest.mark.parametrize("middle", [
    b"\1\x20" + bytes(8),  # a sentinel
    b"\1\x00" + bytes(8),  # an address
])  # fmt: skip
def test_a_record_of_neither_encoding_is_told(middle: bytes) -> None:
    data = bytes(8) + b"\2\0" + b"\1\x80\4" + middle
    found, end = survey_records(u8(data))
    assert end == len(data)
    assert found[:, 5].tolist() == [1]


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=200))
def test_nonsense_is_read_as_far_as_it_makes_sense(data: bytes) -> None:
    found, end = survey_records(u8(data))
    assert found.shape[1] == RECORD_COLUMNS
    assert 0 <= end <= len(data)
    _, probes = read_records(
        u8(data), found[:, 0].astype(np.int64), found[:, 3].copy(), int(found[:, 6].sum()),
        int(found[:, 7].sum()), int(found[:, 10].max(initial=0)),
    )  # fmt: skip
    assert len(probes[0]) == found[:, 7].sum()
    described, stop = read_descriptors(u8(data))
    assert described.shape[1] == DESCRIPTOR_COLUMNS
    assert 0 <= stop <= len(data)


def test_a_count_that_no_section_can_hold_costs_neither_time_nor_memory() -> None:
    for counts in (b"\xff\xff\xff\xff\x0f\0", b"\0\xff\xff\xff\xff\x0f"):
        found, end = survey_records(u8(bytes(8) + counts + bytes(40)))
        assert (len(found), end) == (0, 0)
    found, end = survey_records(u8(bytes(8) + b"\xff\xff\xff\xff\x1f\0"))
    assert (len(found), end) == (0, 0)


def test_functions_may_nest_as_deep_as_the_section_is_long() -> None:
    depth = 200_000
    inner = b"\1" + bytes(8) + b"\0"
    data = bytes(8) + b"\0\1" + (inner + b"\1") * (depth - 1) + inner + b"\0"
    found, end = survey_records(u8(data))
    assert end == len(data)
    assert found[0, [6, 10]].tolist() == [depth + 1, depth]
    nodes, _ = read_records(
        u8(data), np.zeros(1, np.int64), np.zeros(1, np.uint64), depth + 1, 0, depth
    )
    assert nodes[1].tolist() == list(range(-1, depth))


def test_sums_that_are_too_small_are_an_error() -> None:
    data, _ = encoded([(Function(1, [Probe(1, 4), Probe(2, 8)]), 0, None)])
    zero = np.zeros(1, np.int64), np.zeros(1, np.uint64)
    for nodes, probes in ((1, 1), (0, 2)):
        with pytest.raises(IndexError):
            read_records(u8(data), *zero, nodes, probes, 0)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(GUIDS, GUIDS, st.binary(max_size=200)), max_size=4), st.integers(0, 50))
def test_descriptors_are_read_up_to_the_damage(rows, cut: int) -> None:
    data, ends = b"", []
    for row in rows:
        data += descriptor(*row)
        ends.append(len(data))
    data = data[: len(data) - cut]
    found, end = read_descriptors(u8(data))
    whole = [row for row, stop in zip(rows, ends, strict=True) if stop <= len(data)]
    assert end == max([stop for stop in ends if stop <= len(data)], default=0)
    assert [tuple(row[:2]) for row in found.tolist()] == [row[:2] for row in whole]
    assert [data[start:stop] for _, _, start, stop in found.tolist()] == [row[2] for row in whole]
