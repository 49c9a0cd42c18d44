from __future__ import annotations

from dataclasses import replace

import pytest
from builders.elf import Function
from builders.evidence import evidence, flags, gather, gather_sources, program, source, with_limits
from builders.recordings import PIE, RECORDING
from builders.sources import Sample

from lbr2pgo.analyses.latency import latency, timed_blocks, timed_loops
from lbr2pgo.evidence.cycle_counts import ITERATIONS
from lbr2pgo.model.branch_stacks import MISSING

STANDARD = {1: 10484, 2: 16728, 3: 4563, 4: 15815, 6: 4770, 24: 3804, 32: 5567}


def block(cycles: int, times: int = 1) -> Sample:
    """The block from 1005 to the branch at 1006."""
    return Sample([(0x1006, 0x1010, flags(cycles)), (0x1016, 0x1005, flags(99))], weight=times)


def rounds(*cycles: int) -> Sample:
    """Rounds of the loop the short way, newest first, each of which takes two branches."""
    stack = [
        entry
        for each in cycles
        for entry in ((0x1016, 0x1005, flags(each)), (0x1009, 0x1015, flags(1)))
    ]
    return Sample([*stack, (0x1016, 0x1005, flags(7))])


def test_the_rates_of_the_standard_text() -> None:
    found = evidence(*(block(cycles, times) for cycles, times in STANDARD.items()))
    rates = latency(found)[-1]
    assert rates.name == "latency-rates"
    assert [round(100 * rate, 1) for rate in rates.column("rate")] == [
        17.0, 27.1, 7.4, 25.6, 7.7, 6.2, 9.0,
    ]  # fmt: skip
    assert rates.column("count") == tuple(STANDARD.values())


def test_cycles_belong_to_the_block_between_the_older_target_and_the_newer_source() -> None:
    (run,) = timed_blocks(evidence(block(12)))
    assert (run.start, run.end) == (0x1005, 0x1006)
    assert run.times.cycles.tolist() == [12]


def test_a_bimodal_block_shows_two_modes() -> None:
    cycles = {78: 40, 79: 70, 80: 150, 81: 80, 82: 30, 285: 20, 290: 60, 296: 25}
    table = latency(evidence(*(block(c, n) for c, n in cycles.items())))[0]
    assert table.column("modes") == ("80 78 % · 290 22 %",)
    assert table.column("modes_mispredicted") == ("0 % · 0 %",)


def test_missing_and_saturated_counts_are_apart() -> None:
    table = latency(evidence(block(0, 3), block(65535, 2), block(10, 5)))[0]
    row = next(table.records())
    assert (row["count"], row["missing"], row["saturated"]) == (5, 3, 2)
    assert (row["mean"], row["p50"], row["p99"]) == (10, 10, 10)
    assert any("3 of 10 entries have no cycle count" in note for note in table.notes)
    assert any("2 counts are saturated" in note for note in table.notes)


def test_without_cycles_the_table_says_why() -> None:
    (table,) = latency(evidence(block(0)))
    assert table.rows == ()
    assert any("no cycles" in note for note in table.notes)


def test_what_the_files_say_of_it_is_told_instead() -> None:
    found = with_limits(evidence(block(0)), no_cycles=("No clock.", "No power."))
    assert latency(found)[0].notes == ("No clock. No power.",)


def test_entries_without_neighbours_are_not_said_to_have_no_cycles() -> None:
    (table,) = latency(evidence(*(Sample([(0x1006, 0x1010, flags(7))]) for _ in range(3))))
    assert any("No two branches" in note for note in table.notes)


def test_counts_have_no_cycles() -> None:
    found = with_limits(evidence(block(5)), has_samples=False)
    assert any("counts of branches" in note for note in latency(found)[0].notes)


def test_a_filtered_recording_says_why_there_are_no_blocks() -> None:
    (table,) = latency(evidence(block(5), filters=1 << 10 | 1))
    assert any("filtered" in note for note in table.notes)


def test_invalid_runs_have_no_time() -> None:
    across_a_jump = Sample([(0x1016, 0x1005, flags(5)), (0x1016, 0x1008, flags(5))])
    assert timed_blocks(evidence(across_a_jump)) == []


def test_a_loops_round_is_the_time_between_its_back_edges() -> None:
    (loop,) = timed_loops(evidence(rounds(10, 20, 30)))
    assert (loop.start, loop.end) == (0x1005, 0x1016)
    # Each round is its two entries; the oldest back edge has none before it.
    assert loop.times.cycles.tolist() == [11, 21, 31]


def test_calls_backwards_are_no_loops() -> None:
    call = [(0x1051, 0x1022, flags(3)), (0x1020, 0x1050, flags(3))]
    back = (0x1018, 0x1000, flags(3))
    assert timed_loops(evidence(Sample([*call, back, *call, back]))) == []


def test_a_jump_back_to_code_that_never_returns_to_it_is_no_loop() -> None:
    """`jne` back to a `ret`, twice in a stack: the way between them leads through the caller."""
    instructions = {0x1020: "c3", 0x1021: "90", 0x1022: "75fc", 0x1024: "c3", 0x1040: "e8dcffffff",
                    0x1045: "ebf9"}  # fmt: skip
    functions = (Function("f", 0x1020, 6), Function("main", 0x1040, 7))
    once = [(0x1020, 0x1045, flags(1)), (0x1022, 0x1020, flags(4)), (0x1040, 0x1021, flags(1)),
            (0x1045, 0x1040, flags(2))]  # fmt: skip
    toy = program(functions, instructions)
    found = gather_sources([source(Sample([*once, *once, *once]))], toy).evidence
    assert {(run.start, run.end) for run in timed_loops(found)} == {(0x1040, 0x1045)}


def test_a_round_with_a_missing_part_is_missing() -> None:
    stack = [(0x1016, 0x1005, flags(9)), (0x1009, 0x1015, 2), (0x1016, 0x1005, flags(9))]
    found = evidence(Sample(stack), block(5))
    assert timed_loops(found) == []
    iterations = found.found(ITERATIONS)
    assert iterations is not None
    assert iterations.cycles.tolist() == [MISSING]


def test_blocks_with_most_time_come_first() -> None:
    other = Sample([(0x1016, 0x1005, flags(1000)), (0x1012, 0x1015, flags(3))])
    runs = timed_blocks(evidence(block(10, 5), other))
    assert [run.start for run in runs] == [0x1015, 0x1005]


def test_a_real_recording() -> None:
    blocks, by_line, loops, rates = latency(gather((RECORDING,), PIE).evidence, None)
    assert blocks.rows
    assert loops.rows
    assert sum(by_line.column("count")) <= sum(blocks.column("count"))
    shares: dict[tuple[object, object], float] = {}
    for row in rates.records():
        key = row["address"], row["end_address"]
        shares[key] = shares.get(key, 0) + row["rate"]
    assert all(share == pytest.approx(1) for share in shares.values())


def test_interrupts_do_not_move_a_block_to_the_top() -> None:
    """One entry in two hundred takes 50,000 cycles; the other block really takes 30 each time."""
    other = Sample([(0x1016, 0x1005, flags(30)), (0x1012, 0x1015, flags(1))], weight=2000)
    found = evidence(block(20, 1990), block(50_000, 10), other)
    table = latency(found)[0]
    rows = {row["address"]: row for row in table.records()}
    assert rows[0x1005]["trimmed_mean"] == pytest.approx(20, abs=0.1)
    assert rows[0x1005]["mean"] > 200
    assert rows[0x1005]["left_out"] > 0.9
    assert next(table.records())["address"] == 0x1015


def test_cycles_outside_the_function_that_is_asked_for_are_not_denied() -> None:
    found = replace(evidence(block(5)), function=3)
    (table,) = latency(found)
    assert "none of valid runs of the code that is asked for" in table.notes[-1]
