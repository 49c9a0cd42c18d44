"""Code that a recorded process made, in reports; and the real Node, Java and Python."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from builders.jit import (
    AARCH64,
    LOOP,
    MEMORY,
    OTHER,
    PID,
    header,
    lines,
    load,
    record,
    recording,
)
from builders.perf_data import Event, build_id_record
from builders.processes import CALL, RETURN, in_program
from builders.recordings import FEATURE_BUILD_ID, PIE
from pythons import find

from lbr2pgo.analyses.table import Table
from lbr2pgo.program.elf.find import ImagePlaces
from lbr2pgo.program.elf.image import Image
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.reports.model import Report
from lbr2pgo.sources.base import StackSource
from lbr2pgo.sources.series import open_recordings
from lbr2pgo.support.addresses import in_file
from lbr2pgo.support.errors import InputError

ROUND = (MEMORY + 2, MEMORY)
BACK = (MEMORY + 4, in_program(RETURN))
ENTRY = (in_program(CALL), MEMORY)
STACKS = [(100, [BACK, ROUND, ROUND, ENTRY]), (200, [ROUND, ROUND, ENTRY])]


def report(recorded: Path, name: str, **options: object) -> Report:
    given = {"profiles": (recorded,), "binary": PIE, "only": (name,), "top": None} | options
    return make_report(ReportOptions(**given))  # type: ignore[arg-type]


def table(recorded: Path, name: str, **options: object) -> Table:
    found = report(recorded, name, **options).table(name)
    assert found is not None
    return found


def ends(recorded: Path, **options: object) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for row in table(recorded, "hot-branches", **options).records():
        found[row["from_function"], row["to_function"]] += int(row["count"] or 0)
    return found


START = "deregister_tm_clones"
IN_CODE = {(START, "loop"): 2, ("loop", "loop"): 4, ("loop", "__do_global_dtors_aux"): 1}


def dump_at(path: Path, *parts: bytes) -> Path:
    path.write_bytes(header() + b"".join(parts))
    return path


@pytest.mark.parametrize("memory", ["//anon", "/memfd:doublemapper (deleted)"])
def test_a_mapped_jitdump_is_found_and_its_code_read(tmp_path: Path, memory: str) -> None:
    told = lines(MEMORY, [(MEMORY, 3, b"/opt/a.js"), (MEMORY + 4, 5, b"/opt/a.js")])
    dump = dump_at(tmp_path / "jit-10.dump", told, load(MEMORY, "loop", LOOP))
    recorded = recording(tmp_path / "perf.data", dump, STACKS, memory)
    assert ends(recorded) == IN_CODE
    outcomes = {
        row["address"]: (row["taken"], row["not_taken"], row["function"], row["line"])
        for row in table(recorded, "outcomes").records()
    }
    assert {in_file(int(a or 0)): rest for a, rest in outcomes.items()} == {
        MEMORY + 2: (4, 1, "loop", "a.js:3")
    }
    said = report(recorded, "hot-branches").notes
    assert f"{dump}: 1 functions that process {PID} made" in said


def test_images_that_perf_makes_of_a_jitdump_are_read(tmp_path: Path, tool, run) -> None:
    dump = dump_at(tmp_path / f"jit-{PID}.dump", load(MEMORY, "loop", LOOP, time=50))
    by_clock = Event(clock=time.CLOCK_MONOTONIC)
    build_id = bytes.fromhex(Image.open(PIE).build_id or "")
    features = {FEATURE_BUILD_ID: build_id_record(str(PIE), build_id)}
    recorded = recording(tmp_path / "perf.data", dump, STACKS, event=by_clock, features=features)
    injected = tmp_path / "injected.data"
    run(tool("perf"), "inject", "--jit", "-i", recorded, "-o", injected)
    assert list(tmp_path.glob(f"jitted-{PID}-*.so"))
    dump.unlink()
    assert ends(injected) == IN_CODE


def test_names_alone_tell_branches_blocks_and_outcomes(tmp_path: Path) -> None:
    path = tmp_path / "perf-10.map"
    path.write_text(f"{MEMORY:x} 5 loop\n{MEMORY + 0x100:x} 8 idle\n")
    recorded = recording(tmp_path / "perf.data", None, STACKS)
    assert ends(recorded, jit=(path,)) == IN_CODE
    outcomes = {
        in_file(int(row["address"] or 0)): (row["taken"], row["not_taken"])
        for row in table(recorded, "outcomes", jit=(path,)).records()
    }
    assert outcomes == {MEMORY + 2: (4, 1), MEMORY + 4: (1, 0)}


def test_without_them_such_code_is_outside(tmp_path: Path) -> None:
    recorded = recording(tmp_path / "perf.data", None, STACKS)
    outside = {(START, "[outside]"): 2, ("[outside]", "__do_global_dtors_aux"): 1}
    assert ends(recorded) == outside
    dump = dump_at(tmp_path / "jit-10.dump", load(MEMORY, "loop", LOOP))
    mapped = recording(tmp_path / "mapped.data", dump, STACKS)
    assert ends(mapped, libraries=False) == outside
    assert ends(mapped, libraries=False, jit=(dump,)) == IN_CODE


def test_what_took_the_place_of_something_counts_from_its_time_on(tmp_path: Path) -> None:
    again = (MEMORY + 2, MEMORY + 5), (MEMORY + 5, in_program(RETURN))
    late = [(500, [again[1], again[0], ENTRY])]
    made = load(MEMORY, "loop", LOOP), load(MEMORY, "other", OTHER, time=300)
    dump = dump_at(tmp_path / "jit-10.dump", *made)
    recorded = recording(tmp_path / "perf.data", dump, [*STACKS, *late])
    assert ends(recorded) == {
        **IN_CODE, (START, "other"): 1, ("other", "other"): 1,
        ("other", "__do_global_dtors_aux"): 1,
    }  # fmt: skip
    by_clock = dump_at(tmp_path / "jit-10.dump", b"")
    by_clock.write_bytes(header(flags=1) + b"".join(made))
    found = report(recorded, "hot-branches")
    assert any("the last counts" in note for note in found.notes)
    assert {row["from_function"] for row in found.tables[0].records()} == {START, "other"}


def test_files_are_looked_for_under_a_root_and_in_tmp(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "tmp").mkdir(parents=True)
    (root / "tmp/perf-10.map").write_text(f"{MEMORY:x} 5 loop\n")
    recorded = recording(tmp_path / "perf.data", Path("/gone/jit-10.dump"), STACKS)
    assert ends(recorded, places=ImagePlaces((root,))) == IN_CODE
    (root / "gone").mkdir()
    dump_at(root / "gone/jit-10.dump", load(MEMORY, "by dump", LOOP))
    found = ends(recorded, places=ImagePlaces((root,)))
    assert found["by dump", "by dump"] == 4


def test_a_file_of_a_container_is_that_of_who_mapped_it(tmp_path: Path) -> None:
    inside = Path("/app/jit-1.dump")
    recorded = recording(tmp_path / "perf.data", inside, STACKS)
    copy = dump_at(tmp_path / inside.name, load(MEMORY, "loop", LOOP))
    assert ends(recorded, jit=(copy,)) == IN_CODE


def test_damage_is_told_and_what_is_whole_counts(tmp_path: Path) -> None:
    dump = dump_at(tmp_path / "jit-10.dump", load(MEMORY, "loop", LOOP), record(0, 1, b"cut"))
    recorded = recording(tmp_path / "perf.data", dump, STACKS)
    assert ends(recorded) == IN_CODE
    assert f"{dump}: 19 bytes at the end are no whole record" in report(
        recorded, "hot-branches"
    ).notes  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("jit-10.dump", b"nothing", "is no jitdump"),
        ("jit-10.dump", header(AARCH64) + load(MEMORY, "f", LOOP), "is of another machine"),
        ("perf-10.map", b"no map", "holds no line"),
        ("code.txt", b"", "does not say whose code"),
        (f"perf-{'9' * 30}.map", b"1000 5 f", "does not say whose code"),
    ],
)
def test_bad_files_are_refused_where_they_are_named(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    recorded = recording(tmp_path / "perf.data", path, STACKS)
    with pytest.raises(InputError, match=said):
        report(recorded, "hot-branches", jit=(path,))
    if name == "jit-10.dump":
        assert any(said in note for note in report(recorded, "hot-branches").notes)


@pytest.mark.parametrize("name", ["jit-10.dump", "tmp/perf-10.map"])
def test_what_is_found_is_believed_if_it_is_a_plain_file(tmp_path: Path, name: str) -> None:
    recorded = recording(tmp_path / "perf.data", Path("/jit-10.dump"), STACKS)
    (tmp_path / "tmp").mkdir()
    path = tmp_path / name
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        make(path)
        found = report(recorded, "hot-branches", places=ImagePlaces((tmp_path,)))
        assert any(f"{path}: is not read: it is" in note for note in found.notes)
        path.unlink()


NODE = """
function inner(a, i) {
  let s = 0;
  for (let k = 0; k < 50; k++) {
    if ((a[k] ^ i) & 1)
      s += a[k];
    else
      s -= k;
  }
  return s;
}
const a = Array.from({length: 64}, (_, i) => i * 7 % 13);
let t = 0;
for (let i = 0; i < 2000; i++) t += inner(a, i);
console.log(t);
"""
JAVA = """
public class Hot {
  static int inner(int[] a, int i) {
    int s = 0;
    for (int k = 0; k < 50; k++) { if (((a[k] ^ i) & 1) != 0) s += a[k]; else s -= k; }
    return s;
  }
  public static void main(String[] x) {
    int[] a = new int[64];
    for (int i = 0; i < 64; i++) a[i] = i * 7 % 13;
    int t = 0;
    for (int i = 0; i < 20000; i++) t += inner(a, i);
    System.out.println(t);
  }
}
"""
PYTHON = """
def inner(n):
    return sum(i % 7 for i in range(n))
for _ in range(300): inner(50)
"""


@pytest.fixture
def recorded_run(tool, run, tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Record a command under the software LBR; what it wrote to /tmp goes afterwards."""
    tool("qemu-x86_64")
    recorded = tmp_path / "perf.data"

    def record_it(period: int, *command: object) -> Path:
        record_command = sys.executable, "-m", "lbr2pgo", "record", "--emulate", "-o", recorded
        run(*record_command, "-c", period, "--", *command, cwd=tmp_path)
        return recorded

    yield record_it
    source = open_recordings((recorded,))[0].source
    assert isinstance(source, StackSource)
    for pid in {event.pid for event in source.space_events()}:
        Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)


SHOWN = ("outcomes", "mispredictions", "latency")


def shown(recorded: Path, function: str, *jit: Path) -> Report:
    return make_report(ReportOptions((recorded,), only=SHOWN, function=function, jit=jit))


def rows_of(found: Report, name: str) -> dict[int, dict[str, Any]]:
    """By the address in its file."""
    there = found.table(name)
    assert there is not None
    return {in_file(int(row["address"] or 0)): row for row in there.records()}


def share_of(row: dict[str, Any]) -> float:
    taken: int = row["taken"]
    return taken / (taken + row["not_taken"])


@pytest.mark.slow
def test_the_real_node(recorded_run, tool, tmp_path: Path) -> None:
    script = tmp_path / "hot.js"
    script.write_text(NODE)
    options = ("--perf-prof", "--perf-basic-prof", "--single-threaded")
    recorded = recorded_run(4999, tool("node"), *options, script)
    (dump,) = tmp_path.glob("jit-*.dump")
    names = Path("/tmp") / dump.name.replace("jit", "perf").replace("dump", "map")
    function = f"JS:*inner {script}:2:15"
    by_code, by_name = shown(recorded, function), shown(recorded, function, names)
    outcomes, guessed = rows_of(by_code, "outcomes"), rows_of(by_name, "outcomes")
    for address, row in outcomes.items():
        assert re.fullmatch(r"hot\.js:\d+", row["line"])
        if address in guessed:
            assert all(row[name] == guessed[address][name] for name in ("taken", "not_taken"))
        else:
            assert not row["taken"]
    # Every other i is odd. Line 5 alone has no more than the loop's first round, a dozen samples.
    often = [row for row in outcomes.values() if row["taken"] + row["not_taken"] > 200]
    shares = {share_of(row) for row in often if row["line"] in ("hot.js:5", "hot.js:6")}
    assert any(0.4 < share < 0.6 for share in shares)
    for name in SHOWN[1:]:
        own, other = rows_of(by_code, name), rows_of(by_name, name)
        assert own.keys() == other.keys(), name
        assert {"hot.js:4", "hot.js:5"} & {row["line"] for row in own.values()}, name
    assert max(row["count"] for row in rows_of(by_code, "latency-loops").values()) > 50


@pytest.mark.slow
def test_the_real_java(recorded_run, tool, run, tmp_path: Path) -> None:
    (tmp_path / "Hot.java").write_text(JAVA)
    run(tool("javac"), "-d", tmp_path, tmp_path / "Hot.java")
    recorded = recorded_run(
        5003, tool("java"), "-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit",
        "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", tmp_path, "Hot",
    )  # fmt: skip
    found = shown(recorded, "int Hot.inner(int[], int)")
    assert sum(row["predicted"] for row in rows_of(found, "mispredictions").values()) > 1000
    assert any(0.4 < share_of(row) < 0.6 for row in rows_of(found, "outcomes").values())
    assert rows_of(found, "latency")


@pytest.mark.slow
def test_pythons_perf_trampolines(recorded_run, tmp_path: Path) -> None:
    python = next(filter(None, map(find, ("3.12", "3.13"))), None)
    if python is None:
        pytest.skip("python3.12 is not installed")
    (tmp_path / "hot.py").write_text(PYTHON)
    recorded = recorded_run(997, python, "-X", "perf", tmp_path / "hot.py")
    calls = {
        (row["caller"], row["callee"])
        for row in table(recorded, "call-edges", binary=None).records()
    }
    inner = f"py::inner:{tmp_path}/hot.py"
    assert (inner, "_PyEval_EvalFrameDefault") in calls
    assert any(callee == inner for _, callee in calls)
