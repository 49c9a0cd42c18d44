"""Which functions lie over which; the oracle paints their bytes one by one."""

from __future__ import annotations

import random

import pytest

from lbr2pgo.program.jit.made_functions import JitFunction, laid, newest


def some(seed: int) -> list[JitFunction]:
    choose = random.Random(seed)
    return [
        JitFunction(choose.randrange(60), choose.randrange(1, 12), str(i).encode(), time=i // 2)
        for i in range(25)
    ]


def overlap(one: JitFunction, other: JitFunction) -> bool:
    return one.address < other.end and other.address < one.end


@pytest.mark.parametrize("seed", range(20))
def test_of_functions_over_one_another_the_last_counts(seed: int) -> None:
    functions = some(seed)
    wanted: list[JitFunction] = []
    for function in reversed(functions):
        if not any(overlap(function, kept) for kept in wanted):
            wanted.insert(0, function)
    assert newest(functions) == wanted


@pytest.mark.parametrize("most", [0, 3, 100])
@pytest.mark.parametrize("seed", range(10))
def test_what_took_anothers_place_stands_apart(seed: int, most: int) -> None:
    functions = some(seed)
    first, later = laid(functions, most)
    assert len(later) <= most + 1  # of one time with the first of them
    assert not any(overlap(a, b) for i, a in enumerate(first) for b in first[:i])
    assert all(any(overlap(a, b) for b in functions if b is not a) for a in later)
    if most == 100:
        assert sorted([*first, *later], key=functions.index) == functions
    else:
        assert functions[-1] in [*first, *later]


@pytest.mark.parametrize(
    ("address", "size"), [(-1, 4), (0x1000, 0), (1 << 47, 1), ((1 << 47) - 1, 2)]
)
def test_no_process_has_code_elsewhere(address: int, size: int) -> None:
    assert not JitFunction(address, size, b"f").is_possible
    assert JitFunction((1 << 47) - 2, 2, b"f").is_possible
