from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from builders import perf_data as build
from builders.evidence import evidence, gather
from builders.recordings import STATIC
from builders.sources import Sample

from lbr2pgo.analyses.call_stacks import call_stacks, folded, tree
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.program.program import Program

CALL_STACK = 1 << BRANCH_FILTER_BITS["call_stack"] | 1

IN_G = Sample([(0x1000, 0x1040)], ip=0x1040, weight=3)
IN_H = Sample([(0x1020, 0x1050), (0x1018, 0x1020)], ip=0x1051)


def recorded(*samples: Sample):
    return evidence(*samples, filters=CALL_STACK)


def test_stacks_read_from_the_running_function_outwards() -> None:
    assert folded(recorded(IN_G, IN_H)) == [("main;dispatch;h", 1), ("main;g", 3)]


def test_the_interrupted_instruction_names_the_running_function() -> None:
    """After a tail call from g the sample's ip lies in h; perf report, too, shows g above it."""
    assert folded(recorded(replace(IN_G, ip=0x1050))) == [("main;g;h", 3)]


def test_a_frame_outside_is_shown_where_the_program_called_it() -> None:
    """The sample's ip lies in the kernel."""
    assert folded(recorded(replace(IN_G, ip=1 << 63))) == [("main;g;[outside]", 3)]


def test_without_it_the_newest_call_does() -> None:
    assert folded(recorded(replace(IN_G, ip=0))) == [("main;g", 3)]


def test_frames_outside_are_one() -> None:
    deep = Sample([(0x7FFF0000, 0x7FFF1000), (0x7FFF2000, 0x7FFF0000), (0x1000, 0x7FFF2000)])
    assert folded(recorded(deep)) == [("main;[outside]", 1)]


def test_the_tree_holds_own_and_total_samples() -> None:
    root = tree(recorded(IN_G, IN_H))
    main = root.below["main"]
    assert (root.total, main.total, main.own, main.below["g"].own) == (4, 4, 0, 3)
    assert [node.name for node in main.ordered()] == ["g", "dispatch"]


def test_shares_are_those_of_perf_report_children() -> None:
    recursive = Sample([(0x1000, 0x1000), (0x1000, 0x1000)], ip=0x1005)
    functions, *_ = call_stacks(recorded(IN_G, recursive))
    rows = {row["function"]: row for row in functions.records()}
    assert (rows["main"]["total"], rows["main"]["own"]) == (4, 1)  # once a stack
    assert rows["main"]["total_share"] == 1
    assert rows["g"]["own_share"] == 0.75


def test_the_tree_as_rows_has_depths() -> None:
    _, rows, _ = call_stacks(recorded(IN_G, IN_H))
    assert list(zip(rows.column("depth"), rows.column("function"), strict=True)) == [
        (0, "main"), (1, "g"), (1, "dispatch"), (2, "h"),
    ]  # fmt: skip


def test_one_function_shows_the_stacks_that_it_is_in() -> None:
    found = recorded(IN_G, IN_H)
    only = replace(found, function=found.program.regions.by_name("dispatch"))
    assert folded(only) == [("main;dispatch;h", 1)]


def test_other_recordings_say_how_to_get_stacks() -> None:
    (table,) = call_stacks(evidence(Sample([(0x1000, 0x1040)])))
    assert table.rows == ()
    assert any("--call-graph lbr" in note for note in table.notes)


def test_call_chains_beside_branches_are_call_stacks() -> None:
    """A return address belongs to the call before it: h's lies behind the end of dispatch's."""
    chained = Sample([(0x1041, 0x1005)], ip=0x1051, weight=2, chain=[0x1051, 0x1022, 0x1005, 0x1])
    found = evidence(chained, replace(chained, chain=[0x1040, 0x1005]), Sample([(0x1041, 0x1005)]))
    assert folded(found) == [("[outside];main;dispatch;h", 2), ("main;g", 2)]


def test_a_semicolon_in_a_name_breaks_no_folded_stack() -> None:
    from builders.elf import Function
    from builders.evidence import FUNCTIONS, gather_sources, program, source

    functions = (Function("evil;main 9", 0x1000, 0x1A), *FUNCTIONS[1:])
    sample = replace(IN_G, event=0)
    found = gather_sources([source(sample, filters=CALL_STACK)], program(functions)).evidence
    assert folded(found) == [("evil:main 9;g", 3)]


FILTERS = ("user", "call_stack", "no_flags", "no_cycles", "hw_index")
"""What perf record --call-graph lbr asks for (perf: tools/perf/util/evsel.c)."""


def test_a_call_chain_beside_the_stack_changes_nothing(tmp_path: Path) -> None:
    """`perf record --call-graph lbr` samples one too: of frame pointers, which may be wrong."""
    program = Program.open(STATIC)
    start = {name: program.address_of(name) or 0 for name in ("main", "run", "walk")}
    bits = sum(1 << BRANCH_FILTER_BITS[name] for name in FILTERS)
    every = build.IP | build.TID | build.TIME | build.PERIOD | build.CALLCHAIN | build.BRANCH_STACK
    event = build.Event(every, bits)
    stack = ((start["run"] + 4, start["walk"], 0), (start["main"] + 4, start["run"], 0))
    chains = ((), (2**64 - 128, 2**64 - 4096, 2**64 - 512, start["main"], 0x1234))
    path = tmp_path / "perf.data"
    samples = (
        build.Sample(stack, ip=start["walk"] + 1, pid=10, callchain=chain).encode(event)
        for chain in chains
    )
    space = build.mmap2(10, 0x202000, 0xA0000, str(STATIC), event.trailer(10, 10, 1))
    path.write_bytes(build.file_form([event], space + b"".join(samples)))
    assert folded(gather((path,), STATIC).evidence) == [("main;run;walk", 2)]
