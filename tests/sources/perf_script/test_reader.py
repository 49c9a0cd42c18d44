"""`perf script` text: every form that perf prints, forms that people edit, and damage."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from builders import perf_data as build
from builders.fixtures import Corpus, Tool

from lbr2pgo.model.address_space_events import Comm, Exit, Fork, Mmap
from lbr2pgo.model.branch_stacks import (
    ABORT,
    BRANCH_TYPES,
    IN_TRANSACTION,
    MISPREDICTED,
    NOT_TAKEN,
    PREDICTED,
    BranchStacks,
)
from lbr2pgo.sources.base import Addresses, Sniff, StackSource
from lbr2pgo.sources.perf_script.reader import FORMAT, PerfScript
from lbr2pgo.sources.perf_script.records import read_comments, read_record
from lbr2pgo.support.errors import InputError

Entry = tuple[int, int, int]
Write = Callable[[str], PerfScript]
MMAP = "PERF_RECORD_MMAP2 7/7: [0x400000(0x1000) @ 0 00:1d 5 6]: r-xp /bin/x y"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def opened(text: str, chunk_size: int = 1 << 20) -> PerfScript:
        path = tmp_path / "p.txt"
        path.write_bytes(text.encode())
        return PerfScript(path, chunk_size)

    return opened  # type: ignore[return-value]


def stacks(batches: Sequence[BranchStacks]) -> list[list[Entry]]:
    rows = []
    for batch in batches:
        for a, b in zip(batch.offsets, batch.offsets[1:], strict=False):
            rows.append([(int(f), int(t), int(w)) for f, t, w in batch.entries[a:b]])
    return rows


def read(source: StackSource) -> list[list[Entry]]:
    return stacks(list(source.batches()))


def column(source: StackSource, name: str) -> list[int]:
    return [int(v) for batch in source.batches() for v in getattr(batch, name)]


def chains(source: StackSource) -> list[list[int]]:
    found = []
    for batch in source.batches():
        assert batch.chains is not None
        cuts = batch.chains.offsets.tolist()
        found += [batch.chains.frames[a:b].tolist() for a, b in pairwise(cuts)]
    return found


def losses(source: StackSource) -> dict[str, int]:
    list(source.batches())
    return {reason: count for reason, count in source.health().items() if count}


def words(cycles: int, type_name: str = "UNKNOWN", spec: int = 0) -> int:
    return cycles << 4 | BRANCH_TYPES.index(type_name) << 20 | spec << 24


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("P/-/-/4", PREDICTED | words(4)),
        ("M/-/-/0", MISPREDICTED),
        ("-/-/-/0", 0),
        ("P/X/-/1", PREDICTED | IN_TRANSACTION | words(1)),
        ("M/-/A/1", MISPREDICTED | ABORT | words(1)),
        ("P/-/-/-/9", PREDICTED | words(9)),
        ("P/-/-/4/-", PREDICTED | words(4)),
        ("P/-/-/4/", PREDICTED | words(4)),
        ("P/-/-/4//", PREDICTED | words(4)),
        ("P/-/-/4//-", PREDICTED | words(4)),
        ("P/-/-/4/N/A", PREDICTED | words(4)),
        ("P/-/-/4/N/A/N/A", PREDICTED | words(4)),
        ("P/-/-/4/COND", PREDICTED | words(4, "COND")),
        ("P/-/-/4/IND_CALL/-", PREDICTED | words(4, "IND_CALL")),
        ("P/-/-/4/RET/SPEC_WRONG_PATH", PREDICTED | words(4, "RET", 1)),
        ("P/-/-/4//NON_SPEC_CORRECT_PATH", PREDICTED | words(4, spec=2)),
        ("P/-/-/4/CALL/SPEC_CORRECT_PATH/new/field", PREDICTED | words(4, "CALL", 3)),
        ("P/-/-/4/FAULT_DATA/-", PREDICTED | words(4, "EXTEND_ABI") | 1 << 26),
        ("P/-/-/4/ARM64_FIQ/-", PREDICTED | words(4, "EXTEND_ABI") | 3 << 26),
        ("P/-/-/4/SOMETHING_NEW/-", PREDICTED | words(4)),
        ("PN/-/-/4", PREDICTED | NOT_TAKEN | words(4)),
        ("MN/-/-/4", NOT_TAKEN | words(4)),
        ("P/-/-/65536", PREDICTED | words(65535)),
    ],
)
def test_flags(write: Write, flags: str, expected: int) -> None:
    source = write(f"  4005dc 0x4005c8/0x4005dc/{flags}  0x1/0xffffffff81000000/P/-/-/0\n")
    assert read(source) == [[(0x4005C8, 0x4005DC, expected), (1, 0xFFFFFFFF81000000, PREDICTED)]]
    assert not losses(source)


LEGEND = """\
# Branch counter abbr list:
# branch-instructions:ppp = A
# branch-misses = B
# '-' No event occurs
# '+' Event occurrences may be lost due to branch counter saturated
"""
"""What perf 6.12 and later print before each sample with `-F +brcntr`: the counters themselves only
stand in brstackinsn's disassembly (perf: tools/perf/builtin-script.c, ip__fprintf_jump)."""


def test_the_legend_of_branch_counters_is_no_damage(write: Write) -> None:
    source = write(f"{LEGEND}  4005dc 0x10/0x20/P/-/-/4/\n" * 3)
    assert read(source) == [[(0x10, 0x20, PREDICTED | words(4))]] * 3
    assert not losses(source)


@pytest.mark.parametrize(
    "module", ["/bin/x", "[unknown]", "/a b/c (d)/e", "/x)/0", "/lib/y+0x1c", "inlined"]
)
def test_a_module_stands_behind_each_address(write: Write, module: str) -> None:
    entry = f"0x10({module})/0x20({module})/M/-/-/3/"
    assert read(write(f" {entry}  {entry} \n")) == [[(16, 32, MISPREDICTED | words(3))] * 2]


PID_TIME = (7, 8, 12_345_678_000)


@pytest.mark.parametrize(
    ("prefix", "pid", "tid", "time", "ip", "event"),
    [
        (f"{'4005dc':>17}", -1, -1, None, 0x4005DC, None),
        ("400570", -1, -1, None, None, None),
        ("5541f689495641d7", -1, -1, None, 0x5541F689495641D7, None),
        ("    7 ", 7, -1, None, 0, None),
        ("      7 ", 7, -1, None, 0, None),
        (f"    7 {'4005dc':>17}", 7, -1, None, 0x4005DC, None),
        (f"    7/8     {'4005dc':>17}", 7, 8, None, 0x4005DC, None),
        ("              sq     7/8     ", 7, 8, None, 0, None),
        ("     Web Content     7/8     ", 7, 8, None, 0, None),
        ("   -1/0  ", -1, 0, None, 0, None),
        (f"   sq    7/8    12.345678: cycles:u: {'4005dc':>17}", *PID_TIME, 0x4005DC, "cycles:u"),
        ("   sq    7/8    12.345678: ", *PID_TIME, 0, None),
        ("   sq    7/8    12.345678000: ", *PID_TIME, 0, None),
        ("   12 3: 4    7/8  [003] 12.345678: ", *PID_TIME, 0, None),
        ("   sq    7/8  [003] KG  12.345678: ", *PID_TIME, 0, None),
        (f" sq 7/8 12.345678:    1009 raw 0x20c4:u: {'add':>17}", *PID_TIME, 0xADD, "raw 0x20c4:u"),
        (f"  sq   7/8   12.345678: raw 0x20c4:u: {'add':>17}", *PID_TIME, 0xADD, "raw 0x20c4:u"),
        (f"  sq   7/8   12.345678: c/e=0xc4/ppp: {'add':>17}", *PID_TIME, 0xADD, "c/e=0xc4/ppp"),
        (f"raw 0x20c4:u: {'add':>17}", -1, -1, None, 0xADD, "raw 0x20c4:u"),
        (f"    7 raw 0x20c4:u: {'add':>17}", 7, -1, None, 0xADD, "raw 0x20c4:u"),
        (f"      1009 cycles: {'add':>17}", -1, -1, None, 0xADD, "cycles"),
        (f"    7       1009 cycles: {'add':>17}", 7, -1, None, 0xADD, "cycles"),
        (f"  7/8   12.345678: cycles: {'add':>17} main+0x1c (/my x)", *PID_TIME, 0xADD, "cycles"),
        (f"{'add':>17} std::sort(int, dead) (/bin/my x)", -1, -1, None, 0xADD, None),
        (f"  7 12.345678: cycles: {'add':>17} main (/bin/x)", 7, -1, PID_TIME[2], 0xADD, "cycles"),
    ],
)  # fmt: skip
def test_prefixes(
    write: Write, prefix: str, pid: int, tid: int, time: int | None, ip: int | None, event: str
) -> None:
    source = write(f"# a comment\n{prefix} 0x10/0x20/P/-/-/1 \n")
    (batch,) = source.batches()
    assert stacks([batch]) == [[(16, 32, PREDICTED | words(1))]]
    names = [e.name for e in source.info.events]
    if ip is None:  # a lone short number of digits: a pid, unless the file has such addresses
        assert int(batch.pid[0]) == int(prefix)
        return
    assert (int(batch.pid[0]), int(batch.tid[0]), int(batch.ip[0])) == (pid, tid, ip)
    assert int(batch.time[0]) == (12 if time is None else time)
    assert names == ([event] if event else [])
    assert int(batch.event[0]) == (0 if event else -1)


def test_a_lone_number_is_an_address_where_others_are(write: Write) -> None:
    source = write("400570 0x10/0x20/P/-/-/1\n40057a 0x10/0x20/P/-/-/1\n")
    assert column(source, "ip") == [0x400570, 0x40057A]
    assert column(source, "pid") == [-1, -1]


def test_samples_without_a_stack_are_samples(write: Write) -> None:
    source = write(f"{'4005dc':>17}\n{'4005dd':>17} 0x10/0x20/P/-/-/1\n{'4005de':>17} \n")
    assert read(source) == [[], [(16, 32, PREDICTED | words(1))], []]
    assert column(source, "ip") == [0x4005DC, 0x4005DD, 0x4005DE]


def test_call_stacks_before_the_branch_stack(write: Write) -> None:
    text = (
        "\t          4005dc\n\t          400634 main+0x1c (/bin/x)\n"
        " 0x10/0x20/P/-/-/1  0x30/0x40/P/-/-/1\n\n"
        "\t          4005dd\n\n"
        "\t          4005de\n 0x50/0x60/P/-/-/1\n\n"
    )
    one = PREDICTED | words(1)
    source = write(text)
    assert read(source) == [[(16, 32, one), (48, 64, one)], [], [(0x50, 0x60, one)]]
    assert column(source, "ip") == [0x4005DC, 0x4005DD, 0x4005DE]
    assert chains(source) == [[0x4005DC, 0x400634], [0x4005DD], [0x4005DE]]
    assert not losses(source)


@pytest.mark.parametrize("before", ["", "\n", "7\n", "# comment\n\n"])
@pytest.mark.parametrize("frames", [("401360",), ("401360", "40169f"), ("77", "88")])
def test_a_call_stack_alone_may_have_short_addresses(
    frames: tuple[str, ...], before: str, write: Write
) -> None:
    lines = "".join(f"\t{frame}\n" for frame in frames)
    source = write(f"{before}{lines} 0x10/0x20/P/-/-/1\n")
    assert chains(source) == [[int(frame, 16) for frame in frames]]
    assert column(source, "ip") == [int(frames[0], 16)]
    assert column(source, "weight") == [7 if before == "7\n" else 1]


def test_call_stacks_without_a_branch_stack_are_one_sample_each(write: Write) -> None:
    frames = f"\t{'4005dc':>16}\n\t{'400634':>16}\n\n"
    source = write("\n" + frames + frames)
    assert read(source) == [[], []]
    assert chains(source) == [[0x4005DC, 0x400634]] * 2


def test_a_head_line_before_a_call_stack(write: Write) -> None:
    text = (
        "sq    7/8    12.345678: cycles:u: \n\t          4005dc main (/bin/x)\n"
        "\t          400634 foo (/bin/x)\n 0x10/0x20/P/-/-/1\n\n"
        "sq    7/8    12.345679: cycles:u: \n\t          4005dd\n\n"
        "sq    7/9    12.345680: branches: \n\t          4005de\n 0x10/0x20/P/-/-/1\n"
    )
    source = write(text)
    assert [len(s) for s in read(source)] == [1, 0, 1]
    assert chains(source) == [[0x4005DC, 0x400634], [0x4005DD], [0x4005DE]]
    assert column(source, "tid") == [8, 8, 9]
    assert column(source, "ip") == [0x4005DC, 0x4005DD, 0x4005DE]
    assert column(source, "time") == [12_345_678_000, 12_345_679_000, 12_345_680_000]
    assert column(source, "event") == [0, 0, 1]
    assert [e.name for e in source.info.events] == ["cycles:u", "branches"]


def test_aggregated_stacks(write: Write) -> None:
    source = write(
        f"3\n{'4005dc':>17} 0x10/0x20/P/-/-/1\n"
        "12\n\t          4005dc\n\t          400634\n 0x10/0x20/P/-/-/1\n\n"
        f"{'4005dc':>17} 0x10/0x20/P/-/-/1\n"
    )
    assert column(source, "weight") == [3, 12, 1]
    assert chains(source) == [[], [0x4005DC, 0x400634], []]
    assert not losses(source)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_pid_alone_before_a_call_chain_is_no_count(write: Write, end: str) -> None:
    """As `perf script -F pid,ip,brstack` prints a recording with call graphs."""
    lines = ["29825 ", "\t          4005dc", "\t          400634", " 0x10/0x20/P/-/-/1", ""]
    source = write(end.join([*lines, "3", *lines[1:], "  271 ", *lines[1:]]) + end)
    assert column(source, "weight") == [1, 3, 1]
    assert column(source, "pid") == [29825, -1, 271]
    assert not losses(source)


def test_counts_that_mean_nothing_are_told(write: Write) -> None:
    source = write("3\n4\n  4005dc 0x10/0x20/P/-/-/1\n0\n  4005dc 0x10/0x20/P/-/-/1\n")
    assert column(source, "weight") == [4, 1]
    assert losses(source) == {
        "aggregated counts without a sample": 1,
        "aggregated counts of 0, taken as 1": 1,
    }


def test_entries_may_have_two_fields(write: Write) -> None:
    source = write(
        "3\n\t          4005dc\n\t          400634\n 0x10/0x20  0x30/0xffffffff81000000 \n\n"
        "2\n\t          4005dd\n 0x50/0x60 0x70/oops 0x10/0x20\n"
    )
    assert read(source) == [[(16, 32, 0), (48, 0xFFFFFFFF81000000, 0)], [(0x50, 0x60, 0)]]
    assert column(source, "weight") == [3, 2]
    assert column(source, "ip") == [0x4005DC, 0x4005DD]
    assert losses(source) == {"stacks cut short at an unreadable entry": 1}


def test_two_fields_are_no_entry_where_others_have_flags(write: Write) -> None:
    source = write(" 4005dc 0x10/0x20/P/-/-/1 0x30/0x4\n 4005dc 0x50/0x6\n")
    assert read(source) == [[(16, 32, PREDICTED | words(1))]]
    assert sum(losses(source).values()) == 2


RECORDS = """\
sq  7/7   1.000000: PERF_RECORD_COMM exec: my: prog:7/7
sq  7/7   1.000001: PERF_RECORD_MMAP2 7/7: [0x400000(0x1000) @ 0 00:1d 5 6]: r-xp /bin/x y
sq  7/7   1.000002: PERF_RECORD_MMAP2 7/7: [0x500000(0x1000) @ 0x2000 <deadbeef01>]: r--p /bin/z
swapper -1/0 1.000003: PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x10) @ 0xff]: x [k]_text
sq  7/7   1.000004: PERF_RECORD_FORK(9:10):(7:7)
sq  7/7   1.000005: PERF_RECORD_COMM: a/b:9/10
sq  7/7   1.000006: PERF_RECORD_LOST lost 12
sq  7/7   1.000007: PERF_RECORD_SWITCH_CPU_WIDE OUT next pid/tid: 1/1
sq  9/10  1.000009: PERF_RECORD_EXIT(9:10):(7:7)
sq  7/7   1.000008: cycles:                4005dc 0x10/0x20/P/-/-/1
"""


def events_at(times: Sequence[int]) -> tuple[object, ...]:
    t = iter(times)
    return (
        Comm(7, 7, next(t), "my: prog", True),
        Mmap(7, 7, next(t), 0x400000, 0x1000, 0, "/bin/x y"),
        Mmap(7, 7, next(t), 0x500000, 0x1000, 0x2000, "/bin/z", "deadbeef01", False),
        Mmap(-1, 0, next(t), 0xFFFFFFFF81000000, 0x10, 0xFF, "[k]_text"),
        Fork(9, 7, 10, next(t)),
        Comm(9, 10, next(t), "a/b"),
        Exit(9, 10, next(t)),
    )


def test_records_with_times(write: Write) -> None:
    source = write(RECORDS)
    times = [1_000_000_000 + 1000 * i for i in (0, 1, 2, 3, 4, 5, 9)]
    assert tuple(source.space_events()) == events_at(times)
    assert column(source, "time") == [1_000_008_000]
    assert losses(source) == {"samples the kernel lost": 12}


def test_records_without_times_are_ordered_by_place(write: Write) -> None:
    text = "\n".join(line.split(": ", 1)[1] for line in RECORDS.splitlines()[:-1]) + "\n"
    sample = "   7 0x10/0x20/P/-/-/1\n"
    source = write(text + sample)
    places = np.cumsum([0, *(len(line) + 1 for line in text.splitlines())]).tolist()
    assert tuple(source.space_events()) == events_at([places[i] for i in (0, 1, 2, 3, 4, 5, 8)])
    assert column(source, "time") == [places[-1]]


def test_one_record_without_a_time_makes_places_the_order(write: Write) -> None:
    source = write(f"{MMAP}\nsq 7/7 1.5: cycles: 0x10/0x20/P/-/-/1\n")
    assert [e.time for e in source.space_events()] == [0]
    assert column(source, "time") == [len(MMAP) + 1]


def test_a_sample_without_a_time_takes_the_last_one(write: Write) -> None:
    source = write("sq 7/7 1.500000: cycles: 0x10/0x20/P/-/-/1\n 0x10/0x20/P/-/-/1\n")
    assert column(source, "time") == [1_500_000_000] * 2


def test_damaged_records_are_told(write: Write) -> None:
    source = write(f"PERF_RECORD_MMAP2 7/7: [0x400000(0x10\n{MMAP}\n 0x10/0x20/P/-/-/1\n")
    assert len(source.space_events()) == 1
    assert losses(source) == {"lines of mappings or tasks that can't be read": 1}


@pytest.mark.parametrize(
    ("entry", "kept"),
    [
        ("0x30/0x4", 1), ("0x30/", 1), ("0x30", 1), ("0x", 1), ("0x30/0x40/P/-/", 1),
        ("0x30/0x40/Q/-/-/1", 1), ("0x11112222333344445/0x40/P/-/-/1", 1),
        ("0x30(/a/0x40/P/-/-/1", 1),
    ],
)  # fmt: skip
def test_a_broken_entry_ends_its_stack(write: Write, entry: str, kept: int) -> None:
    source = write(f"  4005dc 0x10/0x20/P/-/-/1 {entry} 0x50/0x60/P/-/-/1\n 0x70/0x80/P/-/-/1\n")
    one = PREDICTED | words(1)
    assert read(source) == [[(0x10, 0x20, one)][:kept], [(0x70, 0x80, one)]]
    assert losses(source) == {"stacks cut short at an unreadable entry": 1}


def test_fields_behind_the_stack_are_no_damage(write: Write) -> None:
    source = write("  4005dc 0x10/0x20/P/-/-/1  ilen: 3 insn: 48 89 e5 \n")
    assert len(read(source)[0]) == 1
    assert not losses(source)


def test_lines_that_fit_nothing_are_told(write: Write) -> None:
    source = write("hello world, this is no profile\n 0x10/0x20/P/-/-/1\nError: it broke\n")
    assert len(read(source)) == 1
    assert losses(source) == {"lines that are no sample and no record": 2}


def test_dos_lines_and_a_missing_final_newline(write: Write) -> None:
    source = write(f"{MMAP}\r\n    7 0x10/0x20/P/-/-/1\r\n    7 0x10/0x20/P/-/-/1//")
    assert [len(s) for s in read(source)] == [1, 1]
    assert isinstance(event := source.space_events()[0], Mmap)
    assert event.path == "/bin/x y"
    assert not losses(source)


def test_lines_too_long_are_skipped_and_told(tmp_path: Path) -> None:
    path = tmp_path / "p.txt"
    path.write_text(" 0x30/0x40/P/-/-/1\n" + "x" * 5000 + "\n 0x9000000/0x1000012/P/-/-/1\n")
    source = PerfScript(path, chunk_size=1024)
    assert len(read(source)) == 2
    assert losses(source) == {"bytes in lines too long to be read": 5001}


def test_a_file_without_call_stacks_has_none(write: Write) -> None:
    (batch,) = write(f"{'4005dc':>17} 0x10/0x20/P/-/-/1\n").batches()
    assert batch.chains is None


def test_call_stacks_beside_symbols_are_left_out(write: Write) -> None:
    """They hold addresses of the process."""
    source = write("\t          4005dc\n\t          400634\n foo+0x10/bar+0x2/P/-/-/1\n")
    (batch,) = source.batches({"foo": 0x1000, "bar": 0x2000}.get)
    assert source.info.has_call_chains
    assert batch.chains is None


def test_stacks_of_calls_are_no_frames(write: Write) -> None:
    """perf prints the branch stack, which holds calls, in place of what was sampled."""
    header = "# event : name = calls, branch_sample_type = USER|CALL_STACK\n"
    text = "sq 7/8 1.5: calls: \n\t          4005dc\n 0x10/0x20/P/-/-/1\n"
    assert chains(write(header + text)) == [[]]
    assert chains(write(text)) == [[0x4005DC]]


def test_an_endless_call_stack_keeps_its_innermost_frames(write: Callable[..., PerfScript]) -> None:
    frames = "".join(f"\t{0x400000 + i:16x}\n" for i in range(100_000))
    source = write(frames + " 0x10/0x20/P/-/-/1\n")
    (found,) = chains(source)
    assert found == list(range(0x400000, 0x410000))
    assert losses(source) == {"call stacks cut to their innermost 65,536 frames": 1}
    assert chains(write(frames + " 0x10/0x20/P/-/-/1\n", 1 << 16)) == [found]


def test_chunks_do_not_show(write: Callable[..., PerfScript]) -> None:
    text = RECORDS + "".join(
        f"{i}\nsq 7/{i} {i}.000001: cycles: \n"
        + f"\t{i:16x}\n" * (i % 5)
        + f" 0x{i:x}/0x20/P/-/-/1\n" * (i % 3)
        for i in range(1, 400)
    )
    whole, pieces = write(text), write(text, 256)
    assert pieces.space_events() == whole.space_events()
    assert read(pieces) == read(whole)
    for name in ("pid", "tid", "time", "event", "ip", "weight"):
        assert column(pieces, name) == column(whole, name)
    assert chains(pieces) == chains(whole)
    assert losses(pieces) == losses(whole)


def test_an_entry_of_the_least_size_fits_everywhere(write: Callable[..., PerfScript]) -> None:
    text = " " + "0x0/0x0/-/-/-/0 " * 60 + "\n"
    assert [len(s) for s in read(write(text, 1024))] == [60]
    source = write(" " + "a/b/-/-/-/0 " * 80 + "\n", 1024)
    assert [len(batch.entries) for batch in source.batches(resolver)] == [80]


def resolver(name: str) -> int | None:
    symbols = {"main": 0x1000, "foo(int, char)": 0x2000, "operator/(X)": 0x3000, "a b": 0x4000}
    return symbols.get(name)


@pytest.mark.parametrize(
    "prefix",
    ["", f"{'4002948a68':>17}", "    7 ", "    7/8     ", f"    7 {'4002948a68':>17}",
     "sq  7/8  1.000000: cycles: ", f"sq  7/8  1.000000: cycles: {'4002948a68':>17}",
     f"sq  7/8  1.000000: cycles: {'4002948a68':>17} foo(int)+0x1 (/my (x)/y)",
     f"{'4002948a68':>17} [unknown] ([unknown])"],
)  # fmt: skip
@pytest.mark.parametrize("module", ["", "(/bin/my (x)/y)"])
def test_symbols(write: Write, prefix: str, module: str) -> None:
    pairs = [
        ("main+0x1c", "operator/(X)+0x0"), ("foo(int, char)+0x10", "main+0x0"),
        ("[unknown]", "main+0x5"), ("a b+0x2", "[unknown]"), ("lost+0x1", "main+0x1"),
    ]  # fmt: skip
    line = prefix + "".join(f"{a}{module}/{b}{module}/P/-/-/4/ " for a, b in pairs)
    source = write(line + "\n")
    assert source.info.addresses is Addresses.IMAGE
    (batch,) = source.batches(resolver)
    assert batch.entries[:, :2].tolist() == [
        [0x101C, 0x3000], [0x2010, 0x1000], [0, 0x1005], [0x4002, 0], [0, 0x1001]
    ]  # fmt: skip
    assert set(batch.flags.tolist()) == {PREDICTED | words(4)}
    assert source.health()["branch ends whose symbol the binary lacks"] == 3
    assert int(batch.pid[0]) == (7 if "7" in prefix else -1)
    assert int(batch.ip[0]) == (0x4002948A68 if "4002948a68" in prefix else 0)


def test_symbols_as_perf_prints_them(
    tmp_path: Path, tool: Tool, run: Callable[..., object]
) -> None:
    source = tmp_path / "x.c"
    source.write_text("int foo(int n) { return n * 3; } int main(void) { return foo(1); }")
    binary = tmp_path / "my x"
    run(tool("gcc"), "-O0", "-no-pie", source, "-o", binary)
    listed = run(tool("nm"), binary).stdout  # type: ignore[attr-defined]
    symbols = {name: int(address, 16) for address, _, name in map(str.split, defined(listed))}
    main, foo = symbols["main"], symbols["foo"]
    event = build.Event(sample_type=build.IP | build.TID | build.TIME | build.BRANCH_STACK)
    trailer = event.trailer(10, 10, 1)
    stack = ((main + 5, foo, 2), (foo + 3, main + 9, 1), (0x7FFF00001000, main + 1, 2))
    records = build.comm(10, 10, "my x", trailer, 2 | 1 << 13)
    records += build.mmap2(10, foo & ~0xFFF, 0x1000, str(binary), trailer)
    records += build.Sample(stack=stack, ip=foo + 1, pid=10, tid=10).encode(event)
    data = tmp_path / "perf.data"
    data.write_bytes(build.file_form([event], records))
    expected = [[main + 5, foo], [foo + 3, main + 9], [0, main + 1]]
    for fields in ("+brstacksym", "pid,ip,brstacksym", "ip,brstacksym,dso", "brstacksym"):
        text = tmp_path / "p.txt"
        done = run(tool("perf"), "script", "-i", data, "-F", fields)
        text.write_text(done.stdout)  # type: ignore[attr-defined]
        (batch,) = PerfScript(text).batches(symbols.get)
        assert batch.entries[:, :2].tolist() == expected, fields


def defined(listed: str) -> list[str]:
    return [line for line in listed.splitlines() if len(line.split()) == 3]


def test_a_pipe_is_an_input_error(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b" 0x10/0x20/P/-/-/1\n")
    os.close(write_end)
    with pytest.raises(InputError, match="a pipe"):
        FORMAT.open(Path(f"/dev/fd/{read_end}"))
    os.close(read_end)


def test_symbols_need_a_binary(write: Write) -> None:
    source = write(" main+0x1c/foo+0x0/P/-/-/4/\n")
    with pytest.raises(InputError, match="hold symbols"):
        list(source.batches())


ENDLESS = "7" * 5000


@pytest.mark.parametrize(
    "line",
    [
        f"PERF_RECORD_MMAP2 {ENDLESS}/7: [0x1000(0x10) @ 0 00:1d 5 6]: r-xp /bin/x",
        f"PERF_RECORD_MMAP2 7/7: [0x{ENDLESS}(0x10) @ 0 00:1d 5 6]: r-xp /bin/x",
        f"PERF_RECORD_COMM: a:7/{ENDLESS}",
        f"PERF_RECORD_FORK({ENDLESS}:1):(7:7)",
        f"PERF_RECORD_EXIT({ENDLESS}:1):(7:7)",
    ],
)
def test_numbers_of_endless_digits_are_damage(write: Write, line: str) -> None:
    source = write(f"{line}\n{MMAP}\n 0x10/0x20/P/-/-/1\n")
    assert len(source.space_events()) == 1
    assert source.health()["lines of mappings or tasks that can't be read"] == 1


def test_a_time_of_endless_digits_is_none(write: Write) -> None:
    source = write(f"sq 7/7 {ENDLESS}.000001: PERF_RECORD_COMM: a:7/7\n 0x10/0x20/P/-/-/1\n")
    (event,) = source.space_events()
    assert event.time == 0


def test_comments_of_the_header(write: Write) -> None:
    source = write(
        "# ========\n# hostname : lab\n# arch : x86_64\n# perf version : 6.1\n"
        "# event : name = cycles:u, , id = { 1, 2 }, type = 0, size = 128, sample_type = IP|TID, "
        "branch_sample_type = USER|CALL_STACK|ANY_RETURN\n# ========\n#\n"
        "sq  7/8  1.000000: cycles:u:           4002948a68 0x10/0x20/P/-/-/1\n"
    )
    assert source.info.machine == "x86_64"
    assert source.info.details == {"host": "lab", "perf": "6.1"}
    assert source.info.events[0].branch_sample_type == 1 | 1 << 11 | 1 << 5


@pytest.mark.parametrize(
    ("head", "answer"),
    [
        (b"  4005dc 0x4005c8/0x4005dc/P/-/-/0\n", Sniff.YES),
        (b" main+0x1/foo+0x2/M/-/-/0/COND/-\n", Sniff.YES),
        (MMAP.encode(), Sniff.YES),
        (b"sq  7/8  1.000000: cycles:u:           4002948a68 main (/bin/x)\n", Sniff.YES),
        (b"# ========\n# captured on    : Sat\n", Sniff.YES),
        (b"1\n  4005dc 0x4005c8/0x4005dc/P/-/-/0\n", Sniff.YES),
        (b"1\n\t 4005dc\n 0x4005c8/0x4005dc\n", Sniff.YES),
        (b"", Sniff.MORE),
        (b"# comment\n\t 4005dc\n\t 40063", Sniff.MORE),
        (b"hello\nworld\n", Sniff.NO),
        (b"T 4b196f 4b19e0 4b19ef 2\n", Sniff.NO),
        (b"1 main 5a 1 main 60 0 12\n", Sniff.NO),
        (b"main:123:4\n 1: 12\n", Sniff.NO),
        (b"2\n870-870:2\n875-8bf:1\n2\n", Sniff.NO),
        (b"PERFILE2\0\0 0x4005c8/0x4005dc/P/-/-/0", Sniff.NO),
    ],
)
def test_sniffing(head: bytes, answer: Sniff) -> None:
    assert FORMAT.sniff(head) is answer


@pytest.mark.parametrize(
    "line",
    [
        b"c" + b" 1 1.000000: x" * 40_000 + b": x" * 150_000,
        b"# a" + b" " * 1_000_000,
        b"# " + b"a " * 500_000,
        b"1" * 1_000_000 + b" PERF_RECORD_COMM",
    ],
)
def test_a_line_of_a_megabyte_takes_linear_time(line: bytes) -> None:
    """With patterns that try every way to divide such a line, each took minutes or hours."""
    begin = time.process_time()
    FORMAT.sniff(line)
    read_comments(line)
    read_record(line, 0)
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    ("name", "samples", "entries", "mappings"),
    [
        ("artificial-branch", 1, 15, 0), ("func-split", 1, 32, 0), ("invalid-range", 2, 23, 1),
        ("inline-noprobe2", 13, 416, 0), ("multi-load-segs", 1, 32, 3),
        ("noinline-cs-noprobe", 2, 32, 1), ("noinline-cs-pseudoprobe", 3, 48, 1),
        ("noprobe", 3, 96, 0), ("recursion-compression-noprobe", 1, 16, 1),
        ("unique-linkage-name-dwarf", 1, 16, 1),
    ],
)  # fmt: skip
def test_the_text_of_llvm_profgen(
    corpus: Corpus, name: str, samples: int, entries: int, mappings: int
) -> None:
    source = FORMAT.open(corpus(f"llvm-profgen/{name}.perfscript"))
    assert isinstance(source, StackSource)
    found = read(source)
    assert (len(found), sum(map(len, found)), len(source.space_events())) == (
        samples,
        entries,
        mappings,
    )
    assert set(losses(source)) <= {"lines that are no sample and no record"}


def test_aggregated_text_of_llvm_profgen(corpus: Corpus) -> None:
    source = FORMAT.open(corpus("llvm-profgen/noprobe.aggperfscript"))
    assert column(source, "weight") == [1, 1, 3]
    plain = FORMAT.open(corpus("llvm-profgen/noprobe.perfscript"))
    assert read(source) == read(plain)


FIELDS = (
    "ip,brstack", "pid,brstack", "brstack", "ip,brstack,dso", "pid,time,ip,brstack",
    "comm,pid,tid,time,event,ip,brstack", "comm,tid,cpu,time,period,event,brstack",
    "pid,tid,ip,sym,symoff,dso,brstack", "event,ip,brstack", "period,event,ip,brstack",
)  # fmt: skip


def recording(sample_type: int) -> bytes:
    """Two processes, two events, branch types, kernel addresses, an exec and a fork."""
    events = [
        build.Event(sample_type=sample_type, ids=(1,), type=0, config=0, branch_sample_type=9),
        build.Event(sample_type=sample_type, ids=(2,), type=4, config=0x20C4, branch_sample_type=9),
    ]
    clock, records = 1_000_000_000, []

    def trailer(pid: int, sample_id: int = 1) -> bytes:
        return events[0].trailer(pid, pid, clock, sample_id)

    records.append(build.comm(10, 10, "my prog", trailer(10), 2 | 1 << 13))
    records.append(build.mmap2(10, 0x1000, 0x500000, "/no such/my prog", trailer(10)))
    rng = np.random.default_rng(1)
    for i in range(300):
        clock += 1000 * int(rng.integers(1, 2_000_000))
        if i == 100:
            records.append(build.fork(20, 10, 20, clock, trailer(20)))
        if i == 200:
            identity = bytes([20, 0, 0, 0, *range(1, 21)])
            options = {"identity": identity, "misc": 2 | 1 << 14}
            records.append(build.mmap2(20, 0x500000, 0x10000, "/lib/z", trailer(20), **options))
        pairs = rng.integers(0x400000, 0x410000, size=(int(rng.integers(0, 33)), 2))
        stack = [
            (int(f), int(t), (1 << int(f) % 2) | int(t) % 999 << 4 | int(f) % 11 << 20)
            for f, t in pairs
        ]
        if stack and i % 7 == 0:
            stack[0] = (0xFFFFFFFF81000000, stack[0][1], 0)
        pid = 20 if i > 100 and i % 3 == 0 else 10
        sample = build.Sample(
            stack=tuple(stack), ip=0x400000 + i, pid=pid, tid=pid + i % 2, time=clock,
            sample_id=1 + i % 2, callchain=(0xFFFFFFFFFFFFFE00, 0x400000 + i, 0x400123, 0x400456),
        )  # fmt: skip
        records.append(sample.encode(events[i % 2]))
    return build.file_form(events, b"".join(records))


def assert_same(text: StackSource, data: StackSource, fields: str) -> None:
    ours, theirs = list(text.batches()), list(data.batches())
    expected = stacks(theirs)
    if "," not in fields:  # nothing is printed of a sample without a stack
        assert stacks(ours) == [stack for stack in expected if stack]
        return
    assert stacks(ours) == expected
    assert set(column(text, "weight")) == {1}
    for name, printed in (("pid", "pid"), ("time", "time"), ("ip", "ip"), ("event", "event")):
        if printed in fields.split(","):
            assert column(text, name) == column(data, name), name
    if "pid,tid" in fields:
        assert column(text, "tid") == column(data, "tid")


# perf prints no call stack without an address.
FORMS = [(f, c) for f in FIELDS for c in (False, True) if not (c and f == "brstack")]


@pytest.mark.parametrize(("fields", "with_calls"), FORMS)
def test_text_and_perf_data_of_one_capture_are_equal(
    tmp_path: Path, tool: Tool, run: Callable[..., object],
    fields: str, with_calls: bool,
) -> None:  # fmt: skip
    from lbr2pgo.sources.perf_data import reader as perf_data

    sample_type = (
        build.IP | build.TID | build.TIME | build.ID | build.CPU | build.PERIOD | build.BRANCH_STACK
    )
    if with_calls:
        sample_type |= build.CALLCHAIN
    path = tmp_path / "perf.data"
    path.write_bytes(recording(sample_type))
    text = tmp_path / "p.txt"
    done = run(
        tool("perf"), "script", "-i", path, "-F", fields, "--ns", "--show-mmap-events",
        "--show-task-events",
    )  # fmt: skip
    text.write_text(done.stdout)  # type: ignore[attr-defined]
    ours, theirs = FORMAT.open(text), perf_data.FORMAT.open(path)
    assert isinstance(ours, PerfScript)
    assert isinstance(theirs, StackSource)
    assert_same(ours, theirs, fields)
    assert not losses(ours)
    if "time" in fields.split(","):
        assert tuple(ours.space_events()) == tuple(theirs.space_events())
    else:
        assert len(ours.space_events()) == len(theirs.space_events())


@pytest.mark.slow
def test_a_whole_capture_as_text_and_as_perf_data(
    tmp_path: Path, corpus: Corpus, tool: Tool,
    run: Callable[..., object],
) -> None:  # fmt: skip
    from lbr2pgo.sources.perf_data import reader as perf_data

    path, text = corpus("sqlite/sq.perf.data.zst"), tmp_path / "p.txt"
    done = run(tool("perf"), "script", "-i", path, "-F", "pid,tid,time,ip,brstack", "--ns")
    text.write_text(done.stdout)  # type: ignore[attr-defined]
    ours, theirs = list(PerfScript(text).batches()), list(perf_data.FORMAT.open(path).batches())
    for name in ("entries", "pid", "tid", "time", "ip", "weight"):
        columns = [np.concatenate([getattr(b, name) for b in side]) for side in (ours, theirs)]
        assert np.array_equal(*columns), name


@pytest.mark.slow
@pytest.mark.parametrize("fields", ["pid,time,ip,brstack", "ip,brstack", "comm,tid,brstack"])
def test_counts_of_text_and_of_perf_data_are_equal(
    tmp_path: Path, corpus: Corpus, tool: Tool,
    run: Callable[..., object], fields: str,
) -> None:  # fmt: skip
    from lbr2pgo.counting.count import count
    from lbr2pgo.program.elf.image import Image
    from lbr2pgo.sources.perf_data import reader as perf_data

    path, text = corpus("sqlite/sq.perf.data.zst"), tmp_path / "p.txt"
    layout = Image.open(corpus("sqlite/sq.zst")).layout
    events = ("--show-mmap-events", "--show-task-events")
    done = run(tool("perf"), "script", "-i", path, "-F", fields, *events)
    text.write_text(done.stdout)  # type: ignore[attr-defined]
    ours = count(PerfScript(text), layout).counts
    theirs = count(perf_data.FORMAT.open(path), layout).counts
    for name in ("from_", "to", "end", "known", "count", "mispredicted"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
