from __future__ import annotations

import pytest

from lbr2pgo.profiles.carried.fates import Mentions, name_around, renamed, source_name
from lbr2pgo.profiles.carried.outline import definitions


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("main", "main"),
        ("_ZN1a3BoxIiEC2Ei", "Box"),
        ("_ZN1a3BoxIiED0Ev", "~Box"),
        ("_ZNK1a3BoxltERKS0_", "operator<"),
        ("_ZN1a3BoxclEi", "operator()"),
        ("_ZNK1a3BoxcvmEv", "operatorunsignedlong"),  # as `definitions` has it
        ("_ZN1a4pickIiEEiT_", "pick"),
        ("_ZL4stepi.__uniq.123", "step"),
        ("step.part.0.cold", "step"),
        ("_ZN1a1fEv.resume", "f"),
        ("_ZN4core3fmt5write17h0123456789abcdefE", "write"),
        (12345, "12345"),
    ],
)
def test_names_are_those_of_the_source(name: str | int, source: str) -> None:
    assert source_name(name) == source


@pytest.mark.parametrize(
    ("name", "around"),
    [
        ("_ZZN1a4workEvENK3$_0clEv.__uniq.123", "work"),
        ("_ZZ4workvENKUlT_E_clIiEEDaS_", "work"),
        ("_ZZ4workvENUlvE_8__invokeEv", ""),
        ("_ZN1a4foldISt6vectorIiEZNS_4workEvE3$_1EEjRKT_jT0_", ""),  # given a lambda
        ("_ZN1a3BoxclEi", ""),
    ],
)
def test_lambdas_stand_in_a_function(name: str, around: str) -> None:
    assert name_around(name) == around


def test_a_name_takes_another_last_part() -> None:
    assert renamed("_ZN3box3boxEv", "box", "crate") == "_ZN3box5crateEv"
    assert renamed("_ZL4stepi.__uniq.1", "step", "walk") == "_ZL4walki.__uniq.1"
    assert renamed("run.llvm.9", "run", "walk") == "walk.llvm.9"
    assert renamed(7, "a", "b") == 7
    assert renamed("_Z1av", "other", "b") == "_Z1av"


def test_what_a_profile_says_fits_code() -> None:
    (function,) = definitions("int f(int x) {\n\n  return g(x);\n}\n", "a.c")
    assert Mentions({0, 2}, {(2, "g")}).fit(function) == 3
    assert Mentions({1, 9}, {(0, "g"), (9, "g")}).fit(function) == 0
