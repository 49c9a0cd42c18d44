from __future__ import annotations

import pytest
from builders.evidence import evidence, gather
from builders.recordings import PIE, RECORDING, TESTBINS
from builders.sources import Sample

from lbr2pgo.analyses.call_graph import call_graph_tree
from lbr2pgo.analyses.call_stacks import Node
from lbr2pgo.analyses.hot_functions import function_totals
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS

IN_MAIN = [(0x1016, 0x1005), (0x1012, 0x1015), (0x1006, 0x1010), (0x1016, 0x1005)]
IN_G = [(0x1041, 0x1005), (0x1000, 0x1040)]
"""g, called by main: two instructions."""
FROM_DISPATCH = [(0x1041, 0x1022), (0x1020, 0x1040)]


def shape(node: Node) -> dict[str, object]:
    """Own and total of each node, by name."""
    return {
        each.name: (each.own, each.total, shape(each)) if each.below else (each.own, each.total)
        for each in node.ordered()
    }


def test_a_function_is_shared_among_its_callers_by_their_calls() -> None:
    root = call_graph_tree(evidence(Sample(IN_MAIN), *[Sample(IN_G)] * 3, Sample(FROM_DISPATCH)))
    assert root is not None
    # g ran 8 instructions in all; main made three of its four calls.
    main = next(each for each in root.ordered() if each.name == "main")
    assert shape(main) == {"g": (6, 6)}
    assert main.total == main.own + 6


def test_what_calls_itself_in_circles_ends() -> None:
    circle = [Sample([(0x1018, 0x1020)]), Sample([(0x1020, 0x1000)]), Sample(IN_MAIN)]
    root = call_graph_tree(evidence(*circle))
    assert root is not None
    assert root.total == 7


def test_nothing_is_known_without_what_ran_between_branches() -> None:
    filters = 1 << BRANCH_FILTER_BITS["cond"]
    assert call_graph_tree(evidence(Sample([(0x1016, 0x1005)]), filters=filters)) is None


@pytest.mark.parametrize(
    ("recording", "binary"),
    [
        (RECORDING, PIE),
        (TESTBINS / "recordings/x86-64-shapes.pie.perf.data", TESTBINS / "x86-64/shapes.pie"),
    ],
)
def test_every_instruction_is_in_the_tree_once(recording, binary) -> None:
    found = gather((recording,), binary).evidence
    root = call_graph_tree(found)
    assert root is not None
    total = int(function_totals(found).instructions.sum())
    assert root.total == pytest.approx(total, rel=0.02)
    for _, node in root.walk():
        assert node.total == node.own + sum(each.total for each in node.ordered())
