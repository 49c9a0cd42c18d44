"""The plugin alone, driven block by block by a stand-in for QEMU (programs/fake_qemu.c)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from lbr2pgo.model.branch_stacks import BRANCH_TYPES, type_of
from lbr2pgo.recorders.exact_streams import exact_counts
from lbr2pgo.recorders.plugin_stream import NoteKind, RecordKind, Stream
from lbr2pgo.recorders.stream_samples import sample_batches

VERSIONS = [1, 2, 3, 4, 5, 6, 7]
SIGRETURN, EXIT = 15, 60

Flow = Callable[..., Stream]


def run(*blocks: int) -> str:
    return "".join(f"run 0 {block}\n" for block in blocks)


def counts(stream: Stream) -> dict[tuple[int, int], int]:
    exact = exact_counts([stream])
    assert exact.uncounted == 0
    rows = zip(exact.from_, exact.to, exact.count, strict=True)
    return {(int(from_), int(to)): int(count) for from_, to, count in rows}


def last_entries(stream: Stream) -> list[tuple[int, int, str]]:
    """The newest sample's entries, oldest first."""
    batch = list(sample_batches(stream, 100, {RecordKind.SAMPLE: 0}))[-1]
    entries = batch.entries[batch.offsets[-2] :]
    kinds = type_of(entries[:, 2])
    return [
        (int(from_), int(to), BRANCH_TYPES[kind])
        for (from_, to, _), kind in zip(entries.tolist(), kinds, strict=True)
    ][::-1]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_of_the_interface(version: int, flow: Flow) -> None:
    stream = flow(run(1, 3, 1, 2, 4, 5, 4, 6), version=version)
    assert counts(stream) == {
        (0x1001, 0x1005): 1, (0x1006, 0x1000): 1, (0x1001, 0x1003): 1, (0x1004, 0x1010): 1,
        (0x1011, 0x1020): 1, (0x1020, 0x1010): 1, (0x1011, 0x1022): 1,
    }  # fmt: skip
    assert last_entries(stream) == [
        (0x1001, 0x1005, "COND"), (0x1006, 0x1000, "UNCOND"), (0x1004, 0x1010, "UNCOND"),
        (0x1011, 0x1020, "RET"), (0x1020, 0x1010, "IND_CALL"), (0x1011, 0x1022, "RET"),
    ]  # fmt: skip


def chains(stream: Stream, kind: RecordKind = RecordKind.SAMPLE) -> list[list[int]]:
    (batch,) = sample_batches(stream, 100, {kind: 0})
    assert batch.chains is not None
    offsets = batch.chains.offsets.tolist()
    return [batch.chains.frames[a:b].tolist() for a, b in pairwise(offsets)]


def test_without_a_stack_pointer_callers_go_by_return_addresses(flow: Flow) -> None:
    stream = flow(run(14, 15, 16, 18, 17, 14, 15, 16, 17), callgraph=1)
    once = [[0x3100, 0x3005], [0x3200, 0x3105, 0x3005]]
    assert chains(stream) == [
        *once, [0x3105, 0x3005], [0x3005], [0x3000], *once, [0x3005],
    ]  # fmt: skip
    assert [note.kind for note in stream.notes] == [NoteKind.NO_STACK_POINTER]


def test_callers_are_not_asked_for_in_vain(flow: Flow) -> None:
    assert chains(flow(run(14, 15, 16))) == [[0x3100], [0x3200]]


def test_a_signal_behind_a_conditional_branch(flow: Flow) -> None:
    stream = flow(run(1, 7, 8) + f"call 0 {SIGRETURN}\n" + run(3, 1))
    assert counts(stream) == {(0x1001, 0x1005): 1, (0x1006, 0x1000): 1}
    assert last_entries(stream) == [
        (0, 0x2000, "ERET"), (0, 0x1005, "ERET"), (0x1006, 0x1000, "UNCOND"),
    ]  # fmt: skip


def test_a_fault_inside_a_block_that_its_handler_repairs(flow: Flow) -> None:
    stream = flow(run(1, 7, 8) + f"call 0 {SIGRETURN}\n" + run(9, 2))
    assert counts(stream) == {(0x1001, 0x1003): 1}


def test_a_handler_left_by_a_jump_counts_nothing(flow: Flow) -> None:
    stream = flow((run(1, 7, 6) + run(4, 5)) * 200)
    assert (0x1001, 0x1003) not in counts(stream)
    assert counts(stream)[0x1023, 0x1010] == 200


def test_a_block_that_is_begun_again_in_the_middle(flow: Flow) -> None:
    stream = flow(run(1, 9, 3))
    assert counts(stream) == {(0x1001, 0x1005): 1}
    assert int(stream.counters[0].totals["instructions"]) == 2 + 2


def test_an_instruction_that_reaches_into_the_next_page(flow: Flow) -> None:
    stream = flow(run(12, 13, 4))
    assert counts(stream) == {(0x5FFF, 0x1010): 1}
    assert int(stream.counters[0].totals["instructions"]) == 2 + 2


def test_repeated_strings_are_one_instruction_and_no_branch(flow: Flow) -> None:
    stream = flow(run(10, 10, 10, 11, 10))
    assert counts(stream) == {(0x1012, 0x1010): 1}
    assert int(stream.counters[0].totals["instructions"]) == 3


def test_processors_do_not_mix(flow: Flow) -> None:
    script = "run 0 1\nrun 5 3\nrun 0 2\nrun 5 1\nrun 70000 4\nrun 70000 5\n"
    stream = flow(script)
    assert counts(stream) == {(0x1001, 0x1003): 1, (0x1006, 0x1000): 1, (0x1011, 0x1020): 1}


def test_a_processor_that_is_used_again_goes_on_counting(flow: Flow) -> None:
    script = (run(4, 5, 4, 6) + f"call 0 {EXIT}\n") * 3
    assert counts(flow(script)) == {
        (0x1011, 0x1020): 3, (0x1020, 0x1010): 3, (0x1011, 0x1022): 3,
    }  # fmt: skip


def test_code_that_is_translated_again_is_counted_once(flow: Flow) -> None:
    script = (run(1, 3) + "block 1 1000 90 7502\nblock 3 1005 90 ebf8\n") * 10
    stream = flow(script)
    assert counts(stream) == {(0x1001, 0x1005): 10, (0x1006, 0x1000): 9}
    assert Counter(stream.blocks["start"].tolist())[0x1000] == 1


def test_a_ring_keeps_the_newest(flow: Flow) -> None:
    stream = flow(run(*[1, 3] * 40), depth=8)
    entries = last_entries(stream)
    assert len(entries) == 8
    assert entries[-2:] == [(0x1006, 0x1000, "UNCOND"), (0x1001, 0x1005, "COND")]


def test_a_call_stack(flow: Flow) -> None:
    script = run(5, 4, 6, 5, 4, 6, 5, 4)
    stream = flow(script, callstack=1)
    assert last_entries(stream) == [(0x1020, 0x1010, "IND_CALL")]


@pytest.mark.parametrize("setting", [{"depth": 0}, {"depth": 12}, {"depth": 128}, {"period": 0}])
def test_senseless_settings_are_refused(setting: dict[str, int], flow: Flow) -> None:
    with pytest.raises(AssertionError):
        flow("", **setting)


AARCH64 = """
block 20 4000 1f2003d5 010000d4
block 21 4008 1f2003d5 c0035fd6
"""


def test_aarch64_system_calls_as_brbe_records_them(flow: Flow) -> None:
    script = AARCH64 + run(20) + "call 0 64\nreturn 0 64 0\n" + run(21, 20)
    stream = flow(script, machine=183, halves=1)
    assert last_entries(stream) == [
        (0x4004, 0, "SYSCALL"), (0, 0x4008, "ERET"), (0x400C, 0x4000, "RET"),
    ]  # fmt: skip
    assert counts(stream) == {(0x400C, 0x4000): 1}


@pytest.mark.parametrize("version", VERSIONS)
def test_accesses_are_samples_of_their_instructions(version: int, flow: Flow) -> None:
    """Of block 1, whose instructions stand at 0x1000 and 0x1001."""
    script = "run 0 1\n" + "load 0 1 0 8000\nstore 0 1 1 8008\nload 0 1 1 9000\n"
    stream = flow(script, version=version, accesses=1)
    (batch,) = sample_batches(stream, 100, {RecordKind.ACCESS: 0})
    assert [int(ip) for ip in batch.ip] == [0x1000, 0x1001, 0x1001]
    assert batch.accesses is not None
    assert batch.accesses[:, 0].tolist() == [0x8000, 0x8008, 0x9000]
    assert [source & 0x1F for source in batch.accesses[:, 1].tolist()] == [2, 4, 2]


def test_accesses_of_files_have_callers_where_samples_have(flow: Flow) -> None:
    """Of a load in block 15, and of one in block 16, which it called."""
    mapped = "call 0 9 8000 1000 1\nreturn 0 9 8000\n"
    script = run(14, 15) + mapped + "load 0 15 0 8000\n" + run(16) + "load 0 16 0 8fff\n"
    script += "load 0 16 0 9000\nload 0 16 0 7fff\n"
    expected = [[0x3100, 0x3005], [0x3200, 0x3105, 0x3005], [0x3200], [0x3200]]
    assert chains(flow(script, accesses=1, callgraph=1), RecordKind.ACCESS) == expected
    without = [[frames[0]] for frames in expected]
    assert chains(flow(script, accesses=1), RecordKind.ACCESS) == without


def test_accesses_are_sampled_by_a_period_with_jitter(flow: Flow) -> None:
    stream = flow("run 0 1\n" + "load 0 1 0 8000\n" * 8000, accesses=80)
    assert 95 <= len(stream.accesses_at) <= 105
    steps = {*np.diff(stream.times(stream.accesses_at).astype(np.int64)).tolist()}
    assert len(steps) > 1


def test_without_a_period_nothing_is_asked_for(flow: Flow) -> None:
    assert len(flow(run(1, 3)).accesses_at) == 0
