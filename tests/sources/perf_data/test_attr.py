from __future__ import annotations

import itertools

import pytest

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.sources.perf_data import attr as module
from lbr2pgo.sources.perf_data.attr import PerfAttr, id_field, parse_attr, times_everything


def attr(sample_type: int = 0, flags: int = 0, kind: int = 0, config: int = 0) -> PerfAttr:
    return PerfAttr(kind, config, sample_type, 0, flags, 0)


@pytest.mark.parametrize(
    ("kind", "config", "flags", "name"),
    [
        (abi.TYPE_HARDWARE, 0, 0, "cycles"),
        (abi.TYPE_HARDWARE, 1, abi.ATTR_EXCLUDE_KERNEL, "instructions:u"),
        (abi.TYPE_SOFTWARE, 0, abi.ATTR_EXCLUDE_USER, "cpu-clock:k"),
        (abi.TYPE_RAW, 0x20C4, abi.ATTR_EXCLUDE_KERNEL, "raw 0x20c4:u"),
        (abi.TYPE_HARDWARE, 99, 0, "type 0 config 0x63"),
        (17, 3, 0, "type 17 config 0x3"),
    ],
)
def test_an_event_without_a_name_has_one_from_its_type(
    kind: int, config: int, flags: int, name: str
) -> None:
    assert attr(kind=kind, config=config, flags=flags).display_name() == name


def test_words_of_a_sample_follow_each_other_in_the_kernels_order() -> None:
    fields = module._FIXED_FIELDS
    for present in itertools.product([0, 1], repeat=len(fields)):
        kind = sum(field for field, is_there in zip(fields, present, strict=True) if is_there)
        words = [attr(kind).sample_word(field) for field in fields]
        assert [word for word in words if word >= 0] == list(range(1, 1 + sum(present)))
        assert [word >= 0 for word in words] == [bool(is_there) for is_there in present]
        assert attr(kind).fixed_words == 1 + sum(present)


def test_other_records_end_with_the_same_facts() -> None:
    kind = abi.SAMPLE_TID | abi.SAMPLE_TIME | abi.SAMPLE_IDENTIFIER
    ends = attr(kind, abi.ATTR_SAMPLE_ID_ALL)
    assert ends.trailer_offset(abi.SAMPLE_TID) == -24
    assert ends.trailer_offset(abi.SAMPLE_TIME) == -16
    assert ends.trailer_offset(abi.SAMPLE_IDENTIFIER) == -8
    assert ends.trailer_offset(abi.SAMPLE_CPU) is None
    assert attr(kind).trailer_offset(abi.SAMPLE_TIME) is None


def test_an_attr_of_any_size_is_read() -> None:
    flags = 3 << abi.PRECISE_IP_SHIFT
    raw = abi.ATTR.pack(abi.TYPE_RAW, abi.ATTR.size, 0xC4, 1009, 7, 2, flags, 0, 0, 0, 0, 8, 0b101)
    whole = parse_attr(raw + bytes(64), [5], "taken")
    assert (whole.type, whole.config, whole.sample_type) == (abi.TYPE_RAW, 0xC4, 7)
    assert (whole.branch_sample_type, whole.precise_ip, whole.registers) == (8, 3, 0b101)
    assert (whole.ids, whole.display_name()) == ((5,), "taken")
    assert parse_attr(raw[: abi.ATTR_SIZE_FIRST]).branch_sample_type == 0


def test_times_order_records_only_where_all_have_one() -> None:
    timed = attr(abi.SAMPLE_TIME, abi.ATTR_SAMPLE_ID_ALL)
    assert times_everything([timed, timed])
    assert not times_everything([timed, attr(abi.SAMPLE_TIME)])
    assert not times_everything([timed, attr(0, abi.ATTR_SAMPLE_ID_ALL)])


def test_events_are_told_apart_by_the_identifier_first() -> None:
    both = abi.SAMPLE_ID | abi.SAMPLE_IDENTIFIER
    assert id_field([attr(both)]) == abi.SAMPLE_IDENTIFIER
    assert id_field([attr(abi.SAMPLE_ID)]) == abi.SAMPLE_ID
    assert id_field([attr(abi.SAMPLE_TID)]) is None


@pytest.mark.parametrize(("flags", "period"), [(0, 10007), (abi.ATTR_FREQ, None)])
def test_a_period_is_one_unless_a_frequency_was_asked_for(flags: int, period: int | None) -> None:
    raw = abi.ATTR.pack(0, abi.ATTR_SIZE, 0, 10007, 0, 0, flags, 0, 0, 0, 0, 0, 0)[: abi.ATTR.size]
    assert parse_attr(raw).period == period
