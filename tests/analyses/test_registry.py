from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lbr2pgo.analyses import registry
from lbr2pgo.analyses.registry import ANALYSES, NAMES, Analysis, findings
from lbr2pgo.evidence.collector import Finding


def start(_: object) -> Any:
    raise AssertionError("nothing is collected while it is planned")


CYCLES, CYCLES_AGAIN, STACKS = (
    Finding("cycles", start),
    Finding("cycles", start),
    Finding("s", start),
)
KNOWN: Any = SimpleNamespace()


def test_what_several_analyses_need_is_asked_for_once(monkeypatch) -> None:
    def planned(known: object, top: int | None) -> Finding[Any]:
        assert (known, top) == (KNOWN, 7)
        return STACKS

    made = {
        "one": Analysis(lambda *_: (), (CYCLES,)),
        "two": Analysis(lambda *_: (), (planned, CYCLES_AGAIN)),
        "none": Analysis(lambda *_: ()),
    }
    monkeypatch.setattr(registry, "ANALYSES", made)
    assert findings(["one", "two", "none"], KNOWN, 7) == (CYCLES, STACKS)
    assert findings(["none"], KNOWN, 7) == ()


def test_findings_of_one_name_are_made_by_one_collector() -> None:
    named: dict[str, Any] = {}
    for analysis in ANALYSES.values():
        for need in analysis.needs:
            if isinstance(need, Finding):
                assert named.setdefault(need.name, need.start) is need.start


def test_a_report_shows_each_analysis_once() -> None:
    assert len(set(NAMES)) == len(NAMES) == len(ANALYSES) + 1
