from __future__ import annotations

import numpy as np
import pytest
from builders.sample_profiles import parse, profiles, text, with_tools
from hypothesis import given

from lbr2pgo.analyses.settling import settle
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.llvm.sample_weights import weights

PER_SAMPLE = 64
SHARES = np.random.default_rng(5).dirichlet(np.full(200, 0.2))
REST = "z:900000:900\n 1: 900000\n"
"""A function that stays as it is, and makes that others are few."""


def of(lines: str) -> SampleProfile:
    return parse((lines + REST).encode())


def settled(new: str, old: str) -> str:
    """What becomes of the old profile, without the rest of it."""
    found = text(settle(of(new), of(old)).profile).decode()
    assert REST in found
    return found.replace(REST, "")


def drawn(seed: int, shares: np.ndarray = SHARES, samples: int = 20_000) -> SampleProfile:
    """A profile of so many samples: functions with three locations each, one of a call."""
    counts = np.random.default_rng(seed).multinomial(samples, np.repeat(shares, 3) / 3) * PER_SAMPLE
    lines = [
        f"f{i}:{a + b + c}:{a // 9}\n 0: {a}\n 1: {b} f{i + 1}:{b // 2}\n 2: {c}\n"
        for i, (a, b, c) in enumerate(counts.reshape(-1, 3).tolist())
    ]
    return parse("".join(lines).encode())


@with_tools
@given(profiles() | profiles(is_cs=True) | profiles(is_probe_based=True, has_vtables=True))
def test_a_profile_settles_onto_itself(profile: SampleProfile) -> None:
    found = settle(profile, profile)
    assert text(found.profile) == text(profile)
    assert found.changed == ()


def test_chance_changes_nothing() -> None:
    """But once in twenty times, and these are none of them."""
    for seed in range(15):
        new = drawn(seed, samples=10_000 + 3000 * seed)
        assert settle(new, drawn(seed + 20)).profile.functions == drawn(seed + 20).functions


def test_a_function_that_got_heavier_is_the_only_one_that_changes() -> None:
    """Though its share is taken from all others."""
    shares = SHARES.copy()
    heaviest = int(shares.argmax())
    shares[heaviest] *= 3
    found = settle(drawn(1, shares / shares.sum(), 30_000), drawn(2))
    assert found.changed == (f"f{heaviest}",)
    assert found.verdict == "1 of 200 functions changed"
    before = drawn(2).functions[f"f{heaviest}"].body[2, 0]
    assert found.profile.functions[f"f{heaviest}"].body[2, 0] == pytest.approx(3 * before, rel=0.1)


def test_of_exact_counts_nothing_is_chance() -> None:
    old, new = drawn(0), drawn(0)
    new.functions["f7"].body[0, 0] += 1
    assert settle(new, old).changed == ()
    found = settle(new, old, is_exact=True)
    assert found.changed == ("f7",)
    assert found.profile.functions == {
        **old.functions, "f7": found.profile.functions["f7"],
    }  # fmt: skip
    assert found.profile.functions["f7"].body == new.functions["f7"].body


@pytest.mark.parametrize(
    ("new", "old", "stays"),
    [
        ("f:64:0\n 1: 64\n", "", True),
        ("", "f:64:0\n 1: 64\n", True),
        ("f:640000:0\n 1: 640000\n", "", False),
        ("", "f:640000:0\n 1: 640000\n", False),
        ("f:700:1\n 1: 700 g:64\n", "f:700:1\n 1: 700 h:64\n", True),
        ("f:70000:1\n 1: 70000 g:70000\n", "f:70000:1\n 1: 70000 h:70000\n", False),
        ("f:764:1\n 1: 700\n 2: g:64\n  1: 64\n", "f:700:1\n 1: 700\n", True),
        ("f:77000:1\n 1: 7000\n 2: g:70000\n  1: 70000\n", "f:7000:1\n 1: 7000\n", False),
        ("f:640:9\n 1: 640\n 2: 64\n", "f:640:9\n 1: 640\n", False),
    ],
    ids=[
        "a rare function", "one that was not met", "a frequent one", "one that is gone",
        "other rare calls", "other frequent calls", "a rare inlined copy", "a frequent one",
        "another location",
    ],
)  # fmt: skip
def test_what_one_side_alone_has(new: str, old: str, *, stays: bool) -> None:
    """A new line is as long as the old: what stays is old, what changes is new, in steps."""
    assert settled(new, old) == (old if stays else new)


def test_lines_before_a_function_move_with_it_and_keep_their_numbers() -> None:
    """65400 is line 0, which a function at line 136 counts so."""
    old = "f:900:9\n 1: 700\n 65400: 190 g:190\n 65400: h:10\n  65300: 10\n"
    new = "f:999:9\n 1: 760\n 65398: 200 g:200\n 65398: h:9\n  65298: 9\n"
    moved = old.replace("65400", "65398").replace("65300", "65298")
    assert settled(new, old) == moved


def test_a_function_with_another_checksum_is_the_new_one() -> None:
    old, new = (f"f:{n}:9\n 1: {n}\n !CFGChecksum: {n}\n" for n in (70, 64))
    found = settle(parse(new.encode()), parse(old.encode()))
    assert found.profile.functions["f"].checksum == 64


def test_calls_of_other_code_are_those_of_the_new_one() -> None:
    old = "f:640:9\n 1: 640 g:64\n 3: h:64\n  1: 64\n"
    new = "f:640:9\n 1: 640\n 2: 0\n"
    assert settled(new, old) == new


def test_what_a_pre_inliner_moves_is_no_change() -> None:
    """Counts of g are its own, or those of a copy of it, as chance has its size and its weight."""
    apart = "g:70000:700\n 1: 70000\nf:7000:9\n 1: 7000 g:700\n"
    nested = "f:77000:9\n 1: 7000\n 2: g:70000\n  1: 70000\n  !Attributes: 3\n"
    assert settled(nested, apart) == apart
    fewer = nested.replace("70000", "7000")
    assert settled(fewer, apart) == fewer


def test_a_copy_that_its_function_holds_too_counts_once() -> None:
    copied = " 2: g:20000\n  1: 20000\n  !Attributes: 6\n"
    with_copy, without = (
        f"g:70000:9\n 1: 70000\nf:7000:9\n 1: 7000\n{copy}" for copy in (copied, "")
    )
    assert weights(of(with_copy)).functions["g"] == 70000
    assert settled(with_copy, without) == without


def test_no_number_outgrows_a_profile_and_no_more_functions_change_than_there_are() -> None:
    largest = 2**64 - 1
    old = parse(f"main:{largest}:9\n 1: {largest}\n".encode())
    new = parse(b"main:1:1\n 1: 1\nf:5:1\n 1: 5\n")
    found = settle(new, old)
    assert found.profile.functions["f"].body == {(1, 0): 18446 * 10**15}
    assert found.verdict == "2 of 2 functions changed"
    parse(text(found.profile))
