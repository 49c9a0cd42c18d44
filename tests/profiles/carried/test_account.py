from __future__ import annotations

from lbr2pgo.profiles.carried.account import Account, Way


def test_sums_of_what_became_of_counts() -> None:
    account = Account()
    for function, way, count in (("f", Way.PLACE, 6), ("g", Way.LOST, 1), ("f", Way.LOST, 2),
                                 ("f", Way.SAME, 0), ("h", Way.SAME, 1)):  # fmt: skip
        account.add(function, way, count)
    assert account.carried() == 0.7
    assert account.ways_of_all() == [Way.SAME, Way.PLACE, Way.LOST]
    assert list(account.lost().items()) == [("f", 2), ("g", 1)]
    assert account.as_json()["counts"] == {
        "same": 1, "place": 6, "changed": 0, "unknown": 0, "lost": 3,
    }  # fmt: skip


def test_of_nothing_all_is_carried() -> None:
    assert Account().carried() == 1
