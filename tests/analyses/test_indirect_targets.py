from __future__ import annotations

import pytest
from builders.evidence import evidence, flags, gather
from builders.recordings import PIE, RECORDING
from builders.sources import Sample

from lbr2pgo.analyses.indirect_targets import indirect_targets


def to(target: int, times: int, site: int = 0x1020, *, missed: bool = False) -> Sample:
    return Sample([(site, target, flags(missed=missed))], weight=times)


CALLS = (to(0x1040, 60), to(0x1050, 30, missed=True), to(0x7FFF0000, 10))


def test_targets_with_their_shares() -> None:
    rows = list(indirect_targets(evidence(*CALLS))[1].records())
    assert [row["target_address"] for row in rows] == [0x1040, 0x1050, None]
    assert [row["share"] for row in rows] == [0.6, 0.3, 0.1]
    assert [row["mispredicted"] for row in rows] == [0, 30, 0]
    assert rows[2]["target_function"] == "[outside]"
    assert {row["site_address"] for row in rows} == {0x1020}


def test_what_promotion_would_cover() -> None:
    sites = indirect_targets(evidence(*CALLS, to(0x1050, 60, site=0x1018)))[0]
    rows = list(sites.records())
    assert [(row["kind"], row["count"], row["targets"]) for row in rows] == [
        ("call", 100, 3), ("jump", 60, 1),
    ]  # fmt: skip
    assert [rows[0][f"top_{n}_share"] for n in (1, 2, 3)] == [0.6, 0.9, 0.9]
    assert any("hottest 1, 2, 3 of each site would cover 75.0%, " in n for n in sites.notes)


def test_a_target_outside_can_not_be_promoted() -> None:
    sites = indirect_targets(evidence(to(0x7FFF0000, 10)))[0]
    assert next(sites.records())["top_1_share"] == 0


def test_direct_branches_and_returns_are_no_sites() -> None:
    sample = Sample([(0x1016, 0x1005), (0x1041, 0x1005), (0x1000, 0x1040)])
    assert indirect_targets(evidence(sample))[0].rows == ()


def test_top_counts_sites_and_shows_all_their_targets() -> None:
    sites, targets = indirect_targets(evidence(*CALLS, to(0x1050, 5, site=0x1018)), 1)
    assert (len(sites), sites.found, len(targets), targets.found) == (1, 2, 3, 4)


def test_shares_of_a_real_recording_sum_to_one() -> None:
    sites, targets = indirect_targets(gather((RECORDING,), PIE).evidence, None)
    shares: dict[object, float] = {}
    for row in targets.records():
        shares[row["site_address"]] = shares.get(row["site_address"], 0) + row["share"]
    assert len(shares) == len(sites)
    assert all(share == pytest.approx(1) for share in shares.values())
