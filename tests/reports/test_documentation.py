"""What the docs say of tables is what they are."""

from __future__ import annotations

import json

from builders.evidence import evidence
from builders.recordings import PIE, RECORDING, TESTBINS
from builders.sources import Sample

from lbr2pgo.analyses import registry
from lbr2pgo.analyses.call_stacks import call_stacks
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.reports.build import ReportOptions, make_report

DOCS = TESTBINS.parent / "docs"
TEXT = (DOCS / "reports.md").read_text()
COLUMNS = json.loads((DOCS / "schemas" / "report-columns.json").read_text())


def test_every_table_is_documented_with_its_columns() -> None:
    report = make_report(ReportOptions((RECORDING,), PIE, libraries=False, views=1, source=True))
    call_stack = 1 << BRANCH_FILTER_BITS["call_stack"] | 1
    stacks = call_stacks(evidence(Sample([(0x1000, 0x1040)], ip=0x1040), filters=call_stack))
    for table in (*report.tables, *stacks, report.functions[0].code, report.functions[0].source):
        assert table is not None
        assert COLUMNS[table.name] == [column.name for column in table.columns]


def test_every_analysis_is_documented() -> None:
    for name in (*registry.ANALYSES, "function"):
        assert f"| `{name}` |" in TEXT
