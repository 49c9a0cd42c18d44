"""Accesses that the emulator saw, each of them, of programs that are told what to access."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from builders.evidence import evidence
from builders.fixtures import Tool
from builders.sources import Sample

from lbr2pgo.analyses.data_accesses import data_accesses
from lbr2pgo.analyses.table import Table
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.counting.chosen_samples import CountingOptions
from lbr2pgo.evidence.data_accesses import DATA_ACCESSES, NO_ACCESSES
from lbr2pgo.profiles.llvm.format import LlvmOutput
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software
from lbr2pgo.reports.build import ReportOptions, make_report

PROGRAM = """
#include <pthread.h>
volatile int counter, far[5000], unused;
static volatile const int squares[256] = {0, 1, 4, 9};
_Alignas(64) volatile struct { long of_one, of_other; } close;
_Alignas(64) volatile struct { long of_one; char pad[56]; long of_other; } apart;
_Alignas(64) volatile long read_by_all[8];
static void *work(void *number) {
    volatile long *mine = number ? &close.of_one : &close.of_other;
    volatile long *padded = number ? &apart.of_one : &apart.of_other;
    for (int i = 0; i < 400; i++) { (*mine)++; (*padded)++; (void)read_by_all[i & 7]; }
    return 0;
}
int main(int argc, char **argv) {
    pthread_t thread;
    for (int i = 0; i < 3000; i++) counter++;
    for (int i = 0; i < 4096; i += 2) far[i] = squares[i & 255];
    pthread_create(&thread, 0, work, &thread);
    work(0);
    pthread_join(thread, 0);
}
"""
EVERY = 32
"""A period of branches at which each access is a sample."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> Path:
    directory = tmp_path_factory.mktemp("accesses")
    (directory / "program.c").write_text(PROGRAM)
    command = [tool("clang-22"), "-O1", "-g", "-pthread", "program.c", "-o", "program"]
    subprocess.run(command, cwd=directory, check=True)
    return directory / "program"


def record(program: Path, output: Path, period: int = EVERY) -> Path:
    record_software(RecordOptions(output=output, command=(str(program),), period=period, data=True))
    return output


@pytest.fixture(scope="module")
def recording(built: Path, tool: Tool) -> Path:
    tool("qemu-x86_64")
    return record(built, built.parent / "perf.data")


def tables(program: Path, *recordings: Path) -> tuple[Table, Table, Table]:
    options = ReportOptions(recordings, program, only=("data",), top=None, libraries=False)
    by_symbol, types, shared = make_report(options).tables
    return by_symbol, types, shared


def by_symbol(table: Table) -> Mapping[str, dict[str, object]]:
    return {str(row["symbol"]): row for row in table.records()}


def test_every_access_is_counted(recording: Path, built: Path) -> None:
    rows = by_symbol(tables(built, recording)[0])
    told = {
        name: tuple(rows[name][key] for key in ("loads", "stores", "lines", "pages", "bytes"))
        for name in ("counter", "squares", "close", "apart", "read_by_all")
    }
    assert told == {
        "counter": (3000, 3000, 1, 1, 4),
        "squares": (2048, 0, told["squares"][2], told["squares"][3], 1024),
        "close": (800, 800, 1, 1, 16),
        "apart": (800, 800, 2, told["apart"][3], 72),
        "read_by_all": (800, 0, 1, 1, 64),
    }
    assert (rows["far"]["loads"], rows["far"]["stores"]) == (0, 2048)
    assert 4096 * 4 // 64 <= rows["far"]["lines"] <= 4096 * 4 // 64 + 1  # type: ignore[operator]
    assert "unused" not in rows


def test_uses_of_a_line_are_as_far_apart_as_other_accesses_between_them(
    recording: Path, built: Path
) -> None:
    """Each round of the first loop loads and stores the counter, and little else."""
    rows = by_symbol(tables(built, recording)[0])
    assert 1 <= rows["counter"]["apart"] <= 2  # type: ignore[operator]
    assert 20 < rows["squares"]["apart"] < 300  # type: ignore[operator]


def test_shares_are_of_all_accesses(recording: Path, built: Path) -> None:
    table, _, _ = tables(built, recording)
    elsewhere = float(re.search(r"([\d.]+)% were of stacks", table.notes[0])[1]) / 100  # type: ignore[index]
    assert sum(table.column("share")) + elsewhere == pytest.approx(1, abs=0.001)  # type: ignore[arg-type]


def test_only_lines_of_which_threads_use_words_of_their_own_are_shared_falsely(
    recording: Path, built: Path
) -> None:
    _, _, shared = tables(built, recording)
    rows = by_symbol(shared)
    assert rows["close"]["threads"] == 2
    assert (rows["close"]["samples"], rows["close"]["own_stores"]) == (1600, 800)
    assert rows["close"]["fields"] == "of_one, of_other"
    assert not {"apart", "read_by_all"} & set(rows)


def test_accesses_are_told_by_type_and_field(recording: Path, built: Path) -> None:
    by_symbol, types, _ = tables(built, recording)
    rows = {(row["type"], row["field"]): row for row in types.records()}
    told = {key: (row["loads"], row["stores"]) for key, row in rows.items()}
    # Both structs have no name; `far` and `counter` are of one type.
    assert told == {
        ("(anonymous)", "of_one"): (800, 800),
        ("(anonymous)", "of_other"): (800, 800),
        ("long", None): (800, 0),
        ("int", None): (3000 + 2048, 3000 + 2048),
    }
    assert rows["(anonymous)", "of_one"]["lines"] == 2
    shares = {str(row["symbol"]): row["share"] for row in by_symbol.records()}
    whole = sum(shares[name] for name in ("far", "counter", "squares"))  # type: ignore[misc]
    assert rows["int", None]["share"] == pytest.approx(whole)


def test_without_debug_information_types_are_not_known(
    recording: Path, built: Path, tmp_path: Path, tool: Tool
) -> None:
    stripped = tmp_path / "program"
    command = [tool("llvm-objcopy-22"), "--strip-debug", built, stripped]
    subprocess.run(command, check=True)
    by_symbol, types, shared = tables(stripped, recording)
    assert not len(types)
    assert "build with -g" in types.notes[0]
    assert set(shared.column("fields")) == {None}
    assert len(by_symbol)


def test_recordings_add_up_and_their_threads_are_different_ones(
    recording: Path, built: Path
) -> None:
    """Also where both say the same numbers of threads."""
    one, two = (tables(built, *[recording] * n) for n in (1, 2))
    assert [2 * int(count) for count in one[0].column("loads")] == [*two[0].column("loads")]  # type: ignore[arg-type]
    assert one[0].column("apart") == pytest.approx(two[0].column("apart"))
    assert by_symbol(two[2])["close"]["threads"] == 2


def test_samples_tell_the_same_shares(built: Path, tmp_path: Path) -> None:
    sampled = by_symbol(tables(built, record(built, tmp_path / "perf.data", 32 * 7))[0])
    every = by_symbol(tables(built, record(built, tmp_path / "every.data"))[0])
    for name in ("counter", "far", "close"):
        share, whole = (float(rows[name]["share"]) for rows in (sampled, every))  # type: ignore[arg-type]
        assert share == pytest.approx(whole, rel=0.25)


def test_perf_reads_the_same(recording: Path, built: Path, tool: Tool) -> None:
    said = subprocess.run(
        [tool("perf"), "script", "-i", recording, "-F", "event,addr,data_src"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    lines = [line for line in said.splitlines() if "mem-accesses" in line]
    table, _, _ = tables(built, recording)
    inside = sum(sum(map(int, table.column(name))) for name in ("loads", "stores"))  # type: ignore[arg-type]
    outside = float(re.search(r"([\d.]+)%", table.notes[0])[1]) / 100  # type: ignore[index]
    assert inside / len(lines) == pytest.approx(1 - outside, abs=0.001)
    stores = sum("|OP STORE|" in line for line in lines)
    assert stores + sum("|OP LOAD|" in line for line in lines) == len(lines)
    assert stores > 3000


def test_accesses_enter_no_profile(recording: Path, built: Path, tmp_path: Path) -> None:
    profiles = []
    for event in (None, "taken-branches"):
        output = tmp_path / f"{event}.prof"
        options = ConvertOptions(
            (recording,),
            built,
            counting=CountingOptions(event=event),
            outputs=(LlvmOutput(output),),
        )
        convert(options)
        profiles.append(output.read_bytes())
    assert profiles[0] == profiles[1]


def test_accesses_to_nothing_but_heaps_are_accesses() -> None:
    of = evidence(Sample([(0x1016, 0x1005)]))
    elsewhere = replace(of, findings={DATA_ACCESSES: replace(NO_ACCESSES, elsewhere=5)})
    table, *_ = data_accesses(elsewhere)
    assert not table.rows
    assert table.notes[0] == "100.0% were of stacks, heaps and other files, which no row is of."


def test_recordings_without_any_say_how_to_have_some() -> None:
    table, types, shared = data_accesses(evidence(Sample([(0x1016, 0x1005)])))
    assert table.rows == types.rows == shared.rows == ()
    assert "record --data" in table.notes[0]
