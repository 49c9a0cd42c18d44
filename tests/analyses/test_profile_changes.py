from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from lbr2pgo.analyses.profile_changes import profile_changes
from lbr2pgo.profiles.llvm.sample_names import guid
from lbr2pgo.profiles.weights import CallSite, ProfileWeights

PER_SAMPLE = 10
TRUE = np.random.default_rng(7).dirichlet(np.full(300, 0.1))
"""Shares of functions, as uneven as those of programs."""


def drawn(seed: int, shares: np.ndarray = TRUE, samples: int = 5000) -> ProfileWeights:
    """A profile of so many samples."""
    counts = np.random.default_rng(seed).multinomial(samples, shares) * PER_SAMPLE
    functions = {f"f{i}": count for i, count in enumerate(counts.tolist())}
    calls = {
        CallSite("main", str(i), name): n // 9 for i, (name, n) in enumerate(functions.items())
    }
    return ProfileWeights("a kind", functions, calls, PER_SAMPLE)


def exact(
    functions: Mapping[str, int], calls: Mapping[tuple[str, str, str], int]
) -> ProfileWeights:
    """A profile that chance has no part in."""
    return ProfileWeights("a kind", functions, {CallSite(*site): n for site, n in calls.items()})


def functions(new: ProfileWeights, old: ProfileWeights) -> list[object]:
    return list(profile_changes(new, old)[0].column("function"))


def test_chance_is_left_out() -> None:
    """Of twenty pairs one may well have a row; a row in twenty would be fifteen each."""
    tables = [profile_changes(drawn(seed), drawn(seed + 1)) for seed in range(0, 40, 2)]
    assert sum(len(table) for pair in tables for table in pair) <= 1
    assert all(functions.notes and not calls.notes for functions, calls in tables)


def test_what_changed_is_found_beside_chance() -> None:
    heaviest = int(TRUE.argmax())
    shares = TRUE.copy()
    shares[heaviest] *= 0.5
    found, calls = profile_changes(drawn(1, shares / shares.sum()), drawn(2))
    assert found.column("function")[0] == f"f{heaviest}"
    row = next(found.records())
    assert row["change_low"] < row["change"] < row["change_high"] < 0  # type: ignore[operator]
    assert len(calls) == 0


def test_all_of_it_is_marked() -> None:
    found, _ = profile_changes(drawn(1), drawn(2), everything=True)
    assert set(found.column("sure")) == {"no"}
    few, _ = profile_changes(drawn(1), drawn(2), 3, everything=True)
    assert (len(few), few.found) == (3, len(found))


def test_the_same_has_no_rows() -> None:
    assert all(table.found == 0 for table in profile_changes(drawn(1), drawn(1), everything=True))


def test_a_call_that_moved_within_its_caller_is_neither_gained_nor_lost() -> None:
    old = exact({"f": 9}, {("f", "3", "g"): 4, ("f", "5", "g"): 2, ("f", "7", "h"): 1})
    new = exact({"f": 9}, {("f", "4", "g"): 4, ("f", "7", "g"): 1, ("f", "6", "g"): 2})
    _, calls = profile_changes(new, old)
    rows = [(row["caller"], row["place"], row["callee"], row["old"]) for row in calls.records()]
    assert rows == [("f", "7", "g", 0.0), ("f", "7", "h", 1 / 9)]


@pytest.mark.parametrize("other", ["f.llvm.77", str(guid("f.llvm.5"))])
def test_a_function_is_the_same_under_what_names_it_in_another_build(other: str) -> None:
    old, new = exact({"f.llvm.5": 8, "g": 2}, {}), exact({other: 8, "g": 2}, {})
    assert functions(new, old) == functions(old, new) == []


def test_two_functions_of_one_name_are_not_mixed_up() -> None:
    old = exact({"f.llvm.1": 8, "f.llvm.2": 2}, {})
    new = exact({"f.llvm.3": 2, "f.llvm.4": 8}, {})
    assert sorted(map(str, functions(new, old))) == [f"f.llvm.{n}" for n in (1, 2, 3, 4)]


def test_names_stand_for_hashes() -> None:
    old, new = exact({"f": 8, "g": 2}, {}), exact({str(guid("f")): 2, str(guid("g")): 8}, {})
    assert sorted(map(str, functions(new, old))) == ["f", "g"]
