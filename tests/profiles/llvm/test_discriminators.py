"""Discriminators unpacked as LLVM packs them (LLVM: DILocation::encodeDiscriminator)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.llvm.discriminators import base_discriminator, duplication_factor


def packed_number(value: int) -> tuple[int, int]:
    """A number below 2**12 in LLVM's prefix form, and how many bits it takes."""
    if value == 0:
        return 1, 1
    if value < 0x20:
        return value << 1, 7
    return (value & 0x1F | 0x20 | (value & 0xFE0) << 1) << 1, 14


def packed(base: int, factor: int, copy: int) -> int | None:
    """The word for three numbers, None where 32 bits don't hold them.

    A factor of 1 is stored as 0. Zeros at the end are left out.
    """
    numbers = [base, 0 if factor == 1 else factor, copy]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    word, shift = 0, 0
    for number in numbers:
        bits, size = packed_number(number)
        word |= bits << shift
        shift += size
    return word if shift <= 32 else None


def unpacked(word: int) -> tuple[int, int]:
    words = np.array([word], np.uint32)
    return int(base_discriminator(words)[0]), int(duplication_factor(words)[0])


numbers = st.integers(0, 31) | st.integers(0, 0xFFF)


@given(numbers, st.integers(1, 0xFFF) | st.integers(1, 8), numbers)
def test_what_is_packed_comes_out(base: int, factor: int, copy: int) -> None:
    word = packed(base, factor, copy)
    if word is not None and word & 7 != 7:
        assert unpacked(word) == (base, factor)


def test_three_zeros_at_the_start_mark_a_probe() -> None:
    """No packed word begins with three 1 bits: zeros at the end are never written."""
    words = [packed(b, f, c) for b in (0, 1, 40) for f in (1, 2, 40) for c in (0, 1, 40)]
    assert all(word & 7 != 7 for word in words if word is not None)


@pytest.mark.parametrize("number", [1, 9, 0xFFFF])
def test_probes_are_told_apart_by_their_number_or_base(number: int) -> None:
    assert unpacked(number << 3 | 7) == (number, 1)
    assert unpacked(1 << 28 | 5 << 16 | (number & 0xFF) << 3 | 7)[0] == 5


def test_columns_keep_their_length_and_kind() -> None:
    words = np.array([], np.uint32)
    for function in (base_discriminator, duplication_factor):
        assert function(words).dtype == np.uint32
        assert function(words).shape == (0,)
    assert base_discriminator(np.full(5, 2**32 - 1, np.uint32)).shape == (5,)
