"""The newest and the oldest entry of each stack."""

from __future__ import annotations

from pathlib import Path

from builders.recordings import PIE, RECORDING, STATIC, STATIC_ENTRY, recorded

from lbr2pgo.reports.build import ReportOptions, make_report

NEWEST, OLDEST = (0x22A8D0, 0x22A950, 2), (0x22A8E8, 0x22A780, 2)


def test_each_stack_counts_once_at_each_end_and_short_ones_don_t(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    long = [NEWEST, STATIC_ENTRY, STATIC_ENTRY, STATIC_ENTRY, OLDEST]
    path.write_bytes(recorded([long, long[:4], [OLDEST, NEWEST]]))
    (table,) = make_report(ReportOptions((path,), STATIC, only=("stack-ends",))).tables
    rows = dict(zip(table.column("from_address"), zip(table.column("newest"),
                table.column("oldest"), strict=True), strict=True))  # fmt: skip
    assert rows[NEWEST[0]] == (1.0, 0.0)
    assert rows[STATIC_ENTRY[0]] == (0.0, 0.5)
    assert rows[OLDEST[0]] == (0.0, 0.5)


def test_the_software_lbr_has_no_bias() -> None:
    (table,) = make_report(ReportOptions((RECORDING,), PIE, only=("stack-ends",))).tables
    assert len(table) > 10
    assert set(table.column("biased")) == {""}
    assert table.notes == ()
