import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.llvm import uleb
from lbr2pgo.profiles.llvm.uleb import UlebPart, UlebStream, read_one
from lbr2pgo.support.errors import InputError

numbers = st.integers(0, 300) | st.integers(0, 2**64 - 1) | st.sampled_from([2**63, 2**64 - 1])


def encode_one(number):
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def part(data, **options):
    return UlebPart(memoryview(data), "x", **options)


def take_all(data):
    stream = UlebStream(part(data))
    taken = []
    while not stream.at_end:
        taken.append(stream.take())
    return taken


@given(st.lists(numbers))
def test_encoding_is_that_of_one_number_after_the_other(values):
    encoded, starts = uleb.encode(values)
    pieces = [encode_one(value) for value in values]
    assert encoded == b"".join(pieces)
    assert starts.tolist() == np.cumsum([0, *map(len, pieces)]).tolist()


@given(st.lists(numbers), st.integers(10, 40))
def test_windows_may_end_anywhere(values, window):
    data = uleb.encode(values)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uleb, "_WINDOW", window)
        assert take_all(data) == values


@given(st.lists(numbers, min_size=1))
def test_one_number_is_read_at_any_offset(values):
    data, starts = uleb.encode(values)
    for i, value in enumerate(values):
        assert read_one(part(data), int(starts[i])) == (value, starts[i + 1])


def test_padded_numbers_are_read():
    assert take_all(b"\x81\x80\x00\x05") == [1, 5]
    assert read_one(part(b"\x81\x80\x00\x05"), 0) == (1, 3)


@pytest.mark.parametrize(
    ("data", "place", "what"),
    [
        (b"\x05\x80", "x@0x1", "no end"),
        (b"\x05" + b"\x80" * 10 + b"\x01", "x@0x1", "64 bits"),
        (b"\x05" + b"\xff" * 9 + b"\x02", "x@0x1", "64 bits"),
        (b"\x05" + b"\x80" * 99, "x@0x1", "no end"),
    ],
)
def test_errors_name_the_offset(data, place, what):
    with pytest.raises(InputError, match=what) as caught:
        take_all(data)
    assert caught.value.where == place
    with pytest.raises(InputError, match=r"no end|64 bits") as caught:
        read_one(part(data), 1)
    assert caught.value.where == place


def test_there_is_nothing_behind_the_end():
    stream = UlebStream(part(b"\x05"))
    assert stream.take() == 5
    with pytest.raises(InputError, match="no end"):
        stream.take()


def test_a_number_out_of_range_is_named_with_its_offset():
    stream = UlebStream(part(uleb.encode([300, 5, 70000])[0], start=0x10))
    assert stream.take_at_most(300) == 300
    assert stream.take_at_most(5) == 5
    with pytest.raises(InputError, match="70000 is larger than 65535") as caught:
        stream.take_at_most(65535)
    assert caught.value.where == "x@0x13"


def test_a_part_of_a_part_knows_its_place():
    inner = part(b"0123456789", start=0x100).sub(2, 5)
    assert bytes(inner.data) == b"234"
    with pytest.raises(InputError) as caught:
        inner.fail("bad", 1)
    assert caught.value.where == "x@0x103"


def test_unpacked_bytes_are_named_by_where_the_packed_ones_begin():
    unpacked = part(b"0123456789", start=0x100, unpacked=True)
    with pytest.raises(InputError) as caught:
        unpacked.fail("bad", 7)
    assert caught.value.where == "x@0x100 (unpacked byte 7)"
