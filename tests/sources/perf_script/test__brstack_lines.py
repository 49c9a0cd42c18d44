"""Addresses of data in `perf script` text: as the perf.data holds them that it was printed from."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from builders import perf_data as build
from builders.fixtures import Run, Tool, lbr2pgo
from builders.perf_data import Event, Sample

from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.sources.base import StackSource
from lbr2pgo.sources.perf_data import reader as perf_data
from lbr2pgo.sources.perf_script.reader import PerfScript

ADDRESSES = (0, 0x10, 0x4002838360, 0x7FFCDEADBEE0, 0xFFFF888100000010)
SOURCES = (0, 0x5080022, 0x10268100142, 0x5080044, 0xFEED268100142AAA)
"""The last one takes all columns that it has."""
RECORDED = (
    build.IP | build.TID | build.TIME | build.ADDR | build.ID | build.PERIOD | build.BRANCH_STACK
    | build.WEIGHT
)  # fmt: skip


def recording(sample_type: int) -> bytes:
    """Samples of two events with addresses, weights and sources, some without branches."""
    events = [
        Event(sample_type=sample_type, ids=(i,), type=4, config=i, branch_sample_type=9)
        for i in (1, 2)
    ]
    samples = []
    for i in range(100):
        ip = 0x400000 + i if i % 3 else 0xFFFFFFFF81000000 + i
        words = [i % 7 * 100] + [SOURCES[i // 5 % 5]] * bool(sample_type & build.DATA_SRC)
        sample = Sample(
            stack=tuple((0x400000 + j, 0x400100 + j, 1) for j in range(i % 4)),
            ip=ip, tid=10 + i % 2, time=10**9 + 1234567 * i, sample_id=1 + i % 2,
            callchain=(0xFFFFFFFFFFFFFE00, ip, 0x400123), address=ADDRESSES[i % 5],
            rest=struct.pack(f"<{len(words)}Q", *words),
        )  # fmt: skip
        samples.append(sample.encode(events[i % 2]))
    head = build.comm(10, 10, "my prog", events[0].trailer(10, 10, 1000, 1))
    return build.file_form(events, head + b"".join(samples))


def column(batches: list[BranchStacks], name: str) -> list[int] | list[list[int]]:
    columns = [getattr(batch, name) for batch in batches]
    assert all(each is not None for each in columns)
    return np.concatenate(columns).tolist()  # type: ignore[no-any-return]


def both(
    tmp_path: Path, tool: Tool, run: Run, sample_type: int, fields: str
) -> tuple[list[BranchStacks], list[BranchStacks]]:
    """What is read of a recording's text, and of itself."""
    path, text = tmp_path / "perf.data", tmp_path / "p.txt"
    path.write_bytes(recording(sample_type))
    asked = ("-F", fields) if fields else ()
    text.write_text(run(tool("perf"), "script", "-i", path, "--ns", *asked).stdout)
    # In pieces: what only the whole file tells, each must know.
    ours, theirs = PerfScript(text, 4096), perf_data.FORMAT.open(path)
    assert isinstance(theirs, StackSource)
    read = list(ours.batches()), list(theirs.batches())
    assert not any(ours.health().values())
    return read


def assert_alike(ours: list[BranchStacks], theirs: list[BranchStacks], fields: str) -> None:
    printed = fields.split(",")
    ips = column(theirs, "ip")
    assert column(ours, "ip") == (ips if "ip" in printed else [0] * len(ips))
    assert column(ours, "entries") == (column(theirs, "entries") if "brstack" in printed else [])
    for name in {"pid", "time", "event"}.intersection(printed):
        assert column(ours, name) == column(theirs, name), name


@pytest.mark.parametrize("chain", [0, build.CALLCHAIN], ids=["", "with call chains"])
@pytest.mark.parametrize(
    "fields",
    [
        "pid,tid,time,event,ip,addr,data_src,brstack",
        "comm,tid,time,event,addr,data_src,weight,ip,sym,dso,brstack",
        "pid,time,addr,data_src,brstack", "event,addr,data_src,ip,brstack",
        "pid,addr,data_src,ip,brstack", "period,event,addr,data_src,ip,brstack",
        "time,event,addr,data_src,weight,brstack", "time,event,addr,data_src,weight,ip",
        "time,event,addr,data_src", "time,period,addr,data_src,ip", "addr,data_src,ip",
        "addr,data_src",
    ],
)  # fmt: skip
def test_accesses_are_those_of_the_perf_data(
    tmp_path: Path, tool: Tool, run: Run, fields: str, chain: int
) -> None:
    ours, theirs = both(tmp_path, tool, run, RECORDED | build.DATA_SRC | chain, fields)
    assert column(ours, "accesses") == column(theirs, "accesses")
    assert {address for address, _ in column(ours, "accesses")} == {*ADDRESSES}  # type: ignore[misc]
    assert_alike(ours, theirs, fields)


@pytest.mark.parametrize("chain", [0, build.CALLCHAIN], ids=["", "with call chains"])
def test_what_perf_prints_unasked_has_accesses(
    tmp_path: Path, tool: Tool, run: Run, chain: int
) -> None:
    """Of raw events, it prints them, weights and the symbols of samples."""
    ours, theirs = both(tmp_path, tool, run, RECORDED | build.DATA_SRC | chain, "")
    assert column(ours, "accesses") == column(theirs, "accesses")
    assert_alike(ours, theirs, "tid,time,event,addr,data_src,weight,ip,sym,dso")


@pytest.mark.parametrize("chain", [0, build.CALLCHAIN], ids=["", "with call chains"])
@pytest.mark.parametrize(
    "fields",
    [
        "time,event,addr,ip,brstack", "time,event,addr,weight,ip,brstack", "event,addr,ip,brstack",
        "time,period,addr,ip,brstack", "time,event,addr,weight,brstack", "time,event,addr,brstack",
    ],
)  # fmt: skip
def test_an_address_alone_is_no_access_and_no_ip(
    tmp_path: Path, tool: Tool, run: Run, fields: str, chain: int
) -> None:
    """Neither is it in a perf.data: it does not say what was done."""
    ours, theirs = both(tmp_path, tool, run, RECORDED | chain, fields)
    assert {type(batch.accesses) for batch in (*ours, *theirs)} == {type(None)}
    assert_alike(ours, theirs, fields)


def test_a_source_alone_is_no_access(tmp_path: Path, tool: Tool, run: Run) -> None:
    fields = "time,event,data_src,ip,brstack"
    ours, theirs = both(tmp_path, tool, run, RECORDED | build.DATA_SRC, fields)
    assert {type(batch.accesses) for batch in ours} == {type(None)}
    assert_alike(ours, theirs, fields)


def test_an_ip_that_blanks_were_cut_from_is_no_address_of_data(tmp_path: Path) -> None:
    path = tmp_path / "p.txt"
    path.write_text("7 1.000001: cycles: ffffffff81000000 0x1/0x2/P/-/-/0\n")
    assert column(list(PerfScript(path).batches()), "ip") == [0xFFFFFFFF81000000]


PROGRAM = """
#include <stdio.h>
long cold[4096] = {1}, hot[64] = {2}, warm[512];
int main(void) {
  unsigned x = 1, s = 0;
  for (int i = 0; i < 100000; i++) {
    x = x * 1103515245u + 12345, s += hot[x >> 26];
    if (!(i & 3)) warm[x >> 23] += s;
    if (!(i & 63)) s ^= cold[x >> 20];
  }
  return printf("%u\\n", s) < 0;
}
"""


def test_reports_and_orders_of_data_are_those_of_the_perf_data(
    tmp_path: Path, tool: Tool, run: Run
) -> None:
    program, recorded, text = (tmp_path / name for name in ("program", "perf.data", "p.txt"))
    program.with_suffix(".c").write_text(PROGRAM)
    run(tool("clang-22"), "-O1", "-Wl,--build-id", program.with_suffix(".c"), "-o", program)
    run(*lbr2pgo("record", "--emulate", "--data", "-c", 1009, "-o", recorded, "--", program))
    shown = ("--ns", "--show-mmap-events", "--show-task-events")
    fields = "pid,tid,time,event,ip,addr,data_src,brstack"
    text.write_text(run(tool("perf"), "script", "-i", recorded, *shown, "-F", fields).stdout)
    orders, tables = [], []
    for given in (recorded, text):
        asked = ("report", given, "--binary", program, "--only", "data", "--format", "json")
        tables.append(json.loads(run(*lbr2pgo(*asked)).stdout)["tables"])
        order = tmp_path / "order"
        run(*lbr2pgo("convert", given, "--binary", program, "--data-order", order))
        orders.append(order.read_text())
    assert orders[0] == orders[1]
    assert orders[0].split()[-3:] == ["hot", "warm", "cold"]
    assert tables[0] == tables[1]
    assert "hot" in json.dumps(tables[0])
