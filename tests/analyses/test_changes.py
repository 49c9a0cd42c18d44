from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders.elf import Function
from builders.evidence import _CODE, gather, gather_sources, program, source
from builders.processes import LIBRARY, process_recording
from builders.recordings import PIE, RECORDING, TESTBINS
from builders.sources import Sample

from lbr2pgo.analyses.changes import Compared, base_name, changes
from lbr2pgo.analyses.confidence import difference, wilson
from lbr2pgo.analyses.hot_functions import hot_functions
from lbr2pgo.analyses.table import Table
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.processes import ProcessInputs, read_process
from lbr2pgo.reports.gather import gather as gather_replayed
from lbr2pgo.reports.gather import look_for_analyses

LOOP, OVER, PAST = (0x1016, 0x1005), (0x1006, 0x1010), (0x1009, 0x1015)


def side(*samples: Sample, moved: int = 0) -> Compared:
    """A recording of the toy program, of a build whose functions but `main` lie elsewhere."""
    names = (("main", 0x1000, 0x1A), ("dispatch", 0x1020, 3), ("g", 0x1040 + moved, 2))
    code = {a + (moved if a >= 0x1040 else 0): words for a, words in _CODE.items()}
    made = program([Function(*each) for each in names], code)
    return Compared(gather_sources([source(*samples)], made).evidence, len(samples))


def tables(new: Compared, old: Compared) -> dict[str, Table]:
    return {table.name: table for table in changes(new, old, None)}


def rows(table: Table) -> dict[object, dict[str, object]]:
    return {row["function"]: row for row in table.records()}


def test_functions_are_aligned_by_name_wherever_they_lie() -> None:
    in_main, in_g = Sample([OVER, LOOP]), Sample([(0x1041, 0x1005), (0x1000, 0x1040)])
    moved = Sample([(0x1049, 0x1005), (0x1000, 0x1048)])
    old = side(*[in_main] * 30, *[in_g] * 10)
    new = side(*[in_main] * 10, *[moved] * 30, moved=8)
    found = rows(tables(new, old)["changes-functions"])
    assert found["g"]["old"] == pytest.approx(0.25)
    assert found["g"]["new"] == pytest.approx(0.75)
    assert found["g"]["change"] == pytest.approx(0.5)
    assert found["g"]["sure"] == "yes"


def test_the_same_recording_changed_nothing() -> None:
    one = gather((RECORDING,), PIE).evidence
    for table in changes(Compared(one, 128), Compared(one, 128), None):
        if table.name != "changes-latency":
            assert set(table.column("sure")) == {"no"}
            assert set(table.column("change")) == {0.0}
            assert len(table) > 0


def test_few_samples_make_no_sure_change() -> None:
    taken, past = Sample([LOOP, OVER, LOOP]), Sample([LOOP, PAST, LOOP])
    few = tables(side(taken), side(past))["changes-outcomes"]
    many = tables(side(*[taken] * 50, past), side(*[past] * 50, taken))["changes-outcomes"]
    assert "yes" not in few.column("sure")
    first = next(many.records())
    assert (first["sure"], first["function"]) == ("yes", "main")
    assert first["change_low"] < first["change"] < first["change_high"]  # type: ignore[operator]


def test_what_is_in_one_recording_only_is_counted() -> None:
    new = side(Sample([OVER, LOOP]), Sample([(0x1041, 0x1005), (0x1000, 0x1040)]))
    notes = tables(new, side(Sample([OVER, LOOP])))["changes-functions"].notes
    assert any("1 are in the new recording only, and 0 in the old" in note for note in notes)


def test_builds_of_one_source_have_most_branches_in_common() -> None:
    static = gather(
        (TESTBINS / "recordings/x86-64-interp.static.perf.data",), TESTBINS / "x86-64/interp.static"
    ).evidence
    pie = gather((RECORDING,), PIE).evidence
    found = tables(Compared(pie, 128), Compared(static, 128))
    table = found["changes-functions"]
    for name, evidence in (("new", pie), ("old", static)):
        of = {
            row["function"]: row["instructions_share"]
            for row in hot_functions(evidence, None).records()
        }
        for row in table.records():
            assert row[name] == pytest.approx(of[row["function"]])
    assert len(found["changes-outcomes"]) > 15
    assert len(found["changes-lines"]) > 30
    assert len(found["changes-latency"]) > 5


@pytest.fixture(scope="module")
def build_of_two(tool, run, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Compared]:
    """Builds a program whose two source files both have a `work`, of which that of one ran.

    Takes the files in the order in which they are linked, and the one that ran.
    """
    folder = tmp_path_factory.mktemp("builds")
    body = "static __attribute__((noinline)) int work(int n) { int s = 0;"
    loop = " for (volatile int i = 0; i < n; i++) s += i; return s; }"
    (folder / "first.c").write_text(f"{body}{loop} int first(int n) {{ return work(n); }}")
    (folder / "second.c").write_text(f"{body} s = n;{loop} int second(int n) {{ return work(n); }}")
    (folder / "main.c").write_text(
        "int first(int), second(int); int main(int n) { return first(n) + second(n); }"
    )

    def build(*files: str, ran: str) -> Compared:
        target = folder / "-".join(files)
        run(tool("gcc"), "-g", "-O1", *files, "main.c", "-o", target, cwd=folder)
        made = Program.open(target)
        code, lines = made.branches, made.debug_info().lines(made.branches.address)
        back = np.flatnonzero((code.kind == Kind.COND) & (code.target < code.address))
        row = next(i for i in back if lines.files[lines.file[i]].endswith(ran))
        jump = int(code.address[row]), int(code.target[row])
        return Compared(gather_sources([source(Sample([jump] * 4))], made).evidence, 1)

    return build


def test_equal_names_of_two_source_files_are_two_functions(
    build_of_two: Callable[..., Compared],
) -> None:
    new = build_of_two("first.c", "second.c", ran="first.c")
    same = build_of_two("second.c", "first.c", ran="first.c")
    other = build_of_two("second.c", "first.c", ran="second.c")
    found = rows(tables(new, same)["changes-functions"])
    assert found["work"]["old"] == found["work"]["new"] == 1.0
    assert "first.c" in str(found["work"]["line"])
    for name in ("functions", "layout", "lines", "outcomes"):
        assert len(tables(new, same)[f"changes-{name}"])
        assert not len(tables(new, other)[f"changes-{name}"])


def test_equal_names_of_two_images_are_two_functions(tmp_path: Path) -> None:
    recording = process_recording(tmp_path / "perf.data", {f: str(f) for f in (PIE, LIBRARY)})
    options = ProcessInputs((recording,), PIE, binaries=(LIBRARY,))
    found = gather_replayed(read_process(options, asks=look_for_analyses())).evidence
    regions = found.program.regions
    mains = [i for i in range(len(regions)) if regions.name[i] == "main"]
    places = Compared(found, 1).places(regions.start[mains])
    assert len(set(places)) == len(mains) == 2
    assert [place[0][0] for place in places] == ["", LIBRARY.name]


def test_names_lose_what_is_of_one_build() -> None:
    assert base_name("f.llvm.12.cold") == "f.cold"


def test_bounds_of_a_difference_hold_as_often_as_they_say() -> None:
    random = np.random.default_rng(7)
    new, old = random.binomial(40, 0.3, 4000) / 40, random.binomial(60, 0.1, 4000) / 60
    sizes = np.full(4000, 40.0), np.full(4000, 60.0)
    low, high = difference(new, wilson(new, sizes[0]), old, wilson(old, sizes[1]))
    held = np.mean((low <= 0.2) & (high >= 0.2))
    assert 0.93 < held < 0.98
