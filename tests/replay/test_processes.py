"""What a recording shows of all files of a process; `perf report` counts the same."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from builders.processes import (
    CALL,
    LIBRARY,
    MAIN,
    MISSING,
    RETURN,
    process_recording,
)
from builders.recordings import PIE
from builders.recordings import recording as recording_of

from lbr2pgo.analyses.table import Table
from lbr2pgo.program.elf.find import ImagePlaces
from lbr2pgo.program.process import Process
from lbr2pgo.replay.processes import ProcessInputs, read_process
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.support.addresses import in_file
from lbr2pgo.support.errors import InputError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Of a file system with the program and the library."""
    for file in (PIE, LIBRARY):
        place = tmp_path / "root/opt" / file.name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    return tmp_path / "root"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Its files were in /opt."""
    places = {file: f"/opt/{file.name}" for file in (PIE, LIBRARY)}
    return process_recording(tmp_path / "perf.data", places)


def table_of(recording: Path, name: str, **options: object) -> Table:
    given = {"profiles": (recording,), "only": (name,), "top": None} | options
    found = make_report(ReportOptions(**given)).table(name)  # type: ignore[arg-type]
    assert found is not None
    return found


def rows_of(table: Table, *columns: str) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for row in table.records():
        found[tuple(row[name] for name in columns)] += int(row["count"] or 0)
    return found


ENDS = ("from_function", "from_file", "to_function", "to_file")
START, AUX = "deregister_tm_clones", "__do_global_dtors_aux"
P, L = PIE.name, LIBRARY.name
IN_FILES = {
    (START, P, "main", L): 5,
    (AUX, L, AUX, P): 4,
    (START, P, "[kernel]", "[kernel]"): 3,
    ("[kernel]", "[kernel]", AUX, P): 2,
    (START, P, "[libgone.so.1]", "libgone.so.1"): 6,
    ("[libgone.so.1]", "libgone.so.1", "main", L): 1,
}


def test_every_file_in_a_root_is_a_part_of_the_program(recording: Path, root: Path) -> None:
    table = table_of(recording, "hot-branches", places=ImagePlaces((root,)))
    assert rows_of(table, *ENDS) == IN_FILES
    ends = rows_of(table, "from_address", "to_address")
    assert ends[CALL, MAIN] == 5
    assert set(map(in_file, filter(None, table.column("to_address")))) == {MAIN, RETURN}


def test_files_may_be_named_one_by_one(recording: Path) -> None:
    table = table_of(recording, "hot-branches", binary=PIE, binaries=(LIBRARY,))
    assert rows_of(table, *ENDS) == IN_FILES
    edges = table_of(recording, "call-edges", binary=PIE, binaries=(LIBRARY,))
    assert rows_of(edges, "caller", "caller_file", "callee", "callee_file") == {
        (START, P, "main", L): 5,
        ("[libgone.so.1]", "libgone.so.1", "main", L): 1,
    }


def test_one_file_alone_needs_no_column_for_it(recording: Path) -> None:
    table = table_of(recording, "hot-branches", binary=PIE, libraries=False)
    assert rows_of(table, "from_function", "to_function") == {
        (START, "[kernel]"): 3, ("[kernel]", AUX): 2, (START, "[libgone.so.1]"): 6,
        (START, "[shapes.pie]"): 5, ("[shapes.pie]", AUX): 4,
    }  # fmt: skip
    assert not any("file" in column.name for column in table.columns)


def test_code_without_a_name_goes_by_its_file(recording: Path, tmp_path: Path, tool, run) -> None:
    stripped = tmp_path / "bare.so"
    run(tool("strip"), "-o", stripped, LIBRARY)
    table = table_of(recording, "hot-branches", binary=PIE, binaries=(stripped,))
    (name,) = {row[2] for row in rows_of(table, *ENDS) if row[0] == START and row[3] == "bare.so"}
    assert re.fullmatch(r"bare\.so\+0x[0-9a-f]+", str(name))


def test_what_was_not_found_is_told_with_its_branches(recording: Path) -> None:
    inputs = ProcessInputs((recording,), PIE, binaries=(LIBRARY,))
    found = read_process(inputs)
    assert isinstance(found.program, Process)
    (note,) = (note for note in found.notes if "was not found" in note)
    assert MISSING in note
    assert "was not found, and 7 branches in it" in note
    assert "--sysroot" in note


def test_a_named_file_must_have_been_mapped(recording: Path) -> None:
    other = PIE.with_name("shapes.static")
    with pytest.raises(InputError, match="no process in this recording mapped"):
        read_process(ProcessInputs((recording,), PIE, binaries=(other,)))


def test_files_are_grouped_as_perf_groups_them(tool, run) -> None:
    keys = ("dso_from", "dso_to")
    recorded = recording_of(L)
    options = ReportOptions((recorded,), LIBRARY, sort=keys, top=None, libraries=False)
    shown = run(
        tool("perf"), "report", "-f", "-i", recorded, "-n", "--stdio", "-t", "|",
        "--sort", ",".join(keys),
    )  # fmt: skip
    rows = [[cell.strip() for cell in line.split("|")] for line in shown.stdout.splitlines()]
    theirs = {
        (row[2], row[3]): int(row[1]) for row in rows if len(row) == 4 and row[0].endswith("%")
    }
    ours = rows_of(make_report(options).tables[0], *keys)
    assert ours == {ends: count for ends, count in theirs.items() if L in ends}
    assert len(ours) > 3
