"""Reports for tests of the page: a toy program with names that mean harm, and a flame graph."""

from __future__ import annotations

import base64
import re
import zlib
from dataclasses import replace
from pathlib import Path

from builders.elf import Function
from builders.evidence import FUNCTIONS, flags, gather_sources, program, source
from builders.sources import Sample

from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.program.program import Program
from lbr2pgo.reports.build import ReportOptions, report_of
from lbr2pgo.reports.model import CallNode, Report

HOSTILE = (
    '"><img src=x onerror="document.body.dataset.harm=1"><b id=\'harm\'>',
    "</script><script>document.body.dataset.harm=1</script>",
    "' onmouseover='document.body.dataset.harm=1' {{ 7 * 7 }} javascript:x \u202eltr\x1b[31m",
    "</title></style></details>&lt;i&gt;<!--<svg onload=document.body.dataset.harm=1>",
)
"""What a symbol or a path may say."""

_CALL_STACK = 1 << BRANCH_FILTER_BITS["call_stack"] | 1
_SAMPLES = tuple(
    Sample([(0x1016, 0x1005, flags(cycles)), (0x1009, 0x1015, flags(cycles + 2)),
            (0x1016, 0x1005, flags(3)), (0x1020, 0x1040, flags(9)), (0x1000, 0x1040, flags(5))])
    for cycles in (3, 3, 3, 80)
)  # fmt: skip


_NAMES = tuple(function.name for function in FUNCTIONS)


def unpacked(page: str) -> str:
    """A page with its data as the JSON that it is packed from."""
    return re.sub(
        r'(?<=<script type="text/plain" )id="([^"]*)">([^<]*)',
        lambda found: f'id="{found[1]}">{zlib.decompress(base64.b64decode(found[2])).decode()}',
        page,
    )


def toy_report(names: tuple[str, ...] = _NAMES) -> Report:
    """All analyses, charts and functions of a few samples of the toy program, with these names."""
    return report_of(gather_sources([source(*_SAMPLES)], _program(names)), _options())


def _program(names: tuple[str, ...]) -> Program:
    return program([Function(n, f.start, f.size) for n, f in zip(names, FUNCTIONS, strict=True)])


def hostile_report() -> Report:
    """Harmful names wherever a report can hold a name."""
    toy = toy_report(HOSTILE)
    leaves = tuple(CallNode(name, 10, 10, ()) for name in HOSTILE)
    return replace(
        toy,
        title=HOSTILE[0],
        binary=HOSTILE[3],
        profiles=HOSTILE,
        details=tuple((name, name) for name in HOSTILE),
        notes=HOSTILE,
        summary=HOSTILE,
        call_tree=CallNode("[all]", 40, 0, (CallNode(HOSTILE[1], 40, 0, leaves),)),
        tables=tuple(replace(table, notes=HOSTILE) for table in toy.tables),
        timings=tuple(replace(each, name=HOSTILE[0], line=HOSTILE[1]) for each in toy.timings),
    )


def flame_report(names: tuple[str, ...] = _NAMES) -> Report:
    """Of a call-stack recording of the toy program, with these names."""
    stacks = [
        [(0x1020, 0x1040), (0x1000, 0x1020)],
        [(0x1020, 0x1050), (0x1000, 0x1020)],
        [(0x1000, 0x1040)],
    ]
    samples = [Sample(stack, event=0, ip=stack[0][1]) for stack in stacks for _ in range(3)]
    gathered = gather_sources([source(*samples, filters=_CALL_STACK)], _program(names))
    return report_of(gathered, _options())


def _options() -> ReportOptions:
    return ReportOptions((Path("perf.data"),), Path("toy"), top=None, views=4)
