from __future__ import annotations

import numpy as np

from lbr2pgo.profiles.llvm.profile_table import Body, CallTargets, Contexts, ProfileTable


def table() -> ProfileTable:
    """f, with g inlined at 3.1, h in that at 4, and g again at 5; u stands alone."""
    zeros = np.zeros(5, np.uint64)
    return ProfileTable(
        ("f", "g", "h", "u"),
        Contexts(
            parent=np.array([-1, 0, 1, 0, -1]), line=np.array([0, 3, 4, 5, 0]),
            discriminator=np.array([0, 1, 0, 0, 0]), name=np.array([0, 1, 2, 1, 3]),
            total=zeros + np.uint64(7), head=zeros,
        ),
        Body(
            context=np.array([0, 2, 3, 4]), line=np.array([1, 2, 2, 6]),
            discriminator=np.zeros(4, np.int64), count=np.array([10, 20, 30, 40], np.uint64),
        ),
        CallTargets(
            row=np.array([0, 3, 3]), callee=np.array([3, 0, 1]),
            count=np.array([1, 2, 3], np.uint64),
        ),
    )  # fmt: skip


def test_depths() -> None:
    assert table().depth().tolist() == [0, 1, 2, 1, 0]
    assert len(table()) == 2


def test_the_tree_holds_the_same() -> None:
    functions = table().tree().functions
    assert list(functions) == ["f", "u"]
    f, u = functions.values()
    assert (f.total, f.body, f.call_targets) == (7, {(1, 0): 10}, {(1, 0): {"u": 1}})
    assert [(at, g.name) for at, g in f.inlined()] == [((3, 1), "g"), ((5, 0), "g")]
    assert f.callsites[3, 1]["g"].callsites[4, 0]["h"].body == {(2, 0): 20}
    assert f.callsites[5, 0]["g"].body == {(2, 0): 30}
    assert (u.body, u.call_targets) == ({(6, 0): 40}, {(6, 0): {"f": 2, "g": 3}})


def test_what_is_dropped_takes_its_inlined_copies_along() -> None:
    kept = table().without(np.array([False, True, False, False, False]))
    f, u = kept.tree().functions.values()
    assert [at for at, _ in f.inlined()] == [(5, 0)]
    assert f.callsites[5, 0]["g"].body == {(2, 0): 30}
    assert u.call_targets == {(6, 0): {"f": 2, "g": 3}}
    assert kept.contexts.parent.tolist() == [-1, 0, -1]
    assert len(table().without(np.ones(5, np.bool_))) == 0


def test_names_that_nothing_has_are_left_out() -> None:
    kept = table().without(np.array([False, True, False, False, False])).with_used_names()
    assert kept.names == ("f", "g", "u")
    assert kept.tree().functions["u"].call_targets == {(6, 0): {"f": 2, "g": 3}}


def test_functions_without_a_name_are_called_by_none() -> None:
    kept = table().without_functions(np.array([False, True, False, True]))
    assert kept.names == ("f",)
    assert kept.tree().functions["f"].call_targets == {}
    others = table().without_functions(np.array([True, False, False, False]))
    assert others.tree().functions["u"].call_targets == {(6, 0): {"g": 3}}


def test_nothing_dropped_is_the_same_table() -> None:
    whole = table()
    assert whole.without(np.zeros(5, np.bool_)) is whole
