from __future__ import annotations

from builders.evidence import evidence, gather
from builders.recordings import TESTBINS
from builders.sources import Sample

from lbr2pgo.analyses.call_edges import call_edges


def edges(*branches: tuple[int, int]) -> dict[tuple[str, str], int]:
    table = call_edges(evidence(*(Sample([branch]) for branch in branches)))
    return {(row["caller"], row["callee"]): row["count"] for row in table.records()}


def test_direct_indirect_and_tail_calls() -> None:
    found = edges((0x1000, 0x1040), (0x1020, 0x1050), (0x1018, 0x1050), (0x1018, 0x1050))
    assert found == {("main", "g"): 1, ("dispatch", "h"): 1, ("main", "h"): 2}


def test_jumps_within_a_function_and_returns_are_no_calls() -> None:
    assert edges((0x1016, 0x1005), (0x1041, 0x1005), (0x1051, 0x1022)) == {}


def test_calls_across_the_images_border() -> None:
    found = edges((0x1020, 0x7FFF0000), (0x7FFF0000, 0x1000), (0x7FFF0000, 0x1005))
    assert found == {("dispatch", "[outside]"): 1, ("[outside]", "main"): 1}


def test_shares_are_of_all_calls() -> None:
    table = call_edges(evidence(*(Sample([(0x1000, 0x1040)]),) * 3, Sample([(0x1020, 0x1050)])))
    assert table.column("share") == (0.75, 0.25)


def test_it_warns_that_edges_are_not_time() -> None:
    assert any("not how long" in note for note in call_edges(evidence()).notes)


def test_stubs_of_the_linkage_table_have_names() -> None:
    recording = TESTBINS / "recordings" / "x86-64-shapes.pie.perf.data"
    table = call_edges(gather((recording,), TESTBINS / "x86-64" / "shapes.pie").evidence, None)
    found = {(row["caller"], row["callee"]): row["count"] for row in table.records()}
    assert found["main", "_Znwm@plt"] == 24
    assert not [callee for _, callee in found if callee.startswith("[0x3")]
