"""How much is done, counted instead of timed: the same on every machine, however busy it is."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders.fixtures import ROOT
from builders.outputs import outputs

from lbr2pgo.conversion import Conversion, ConvertOptions, convert
from lbr2pgo.counting import trace_table
from lbr2pgo.program import program
from lbr2pgo.program.dwarf import lookup
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program

RECORDING = ROOT / "testbins" / "recordings" / "x86-64-interp.pie.perf.data"
BINARY = ROOT / "testbins" / "x86-64" / "interp.pie"


class Work:
    """Counts calls of the functions that do the work, and what they are given."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.done: Counter[str] = Counter()
        self._watch(patch, trace_table, "stacks_of", self._hashed)
        self._watch(patch, program, "decode", self._disassembled)
        for name in ("subprogram_ranges", "functions_around", "read_line_table"):
            self._watch(patch, lookup, name, lambda *_, name=name: self._add(name, 1))

    def _watch(
        self, patch: pytest.MonkeyPatch, module: Any, name: str, note: Callable[..., None]
    ) -> None:
        original = getattr(module, name)

        def watched(*arguments: Any) -> Any:
            note(*arguments)
            return original(*arguments)

        patch.setattr(module, name, watched)

    def _add(self, what: str, count: int) -> None:
        self.done[what] += count

    def _hashed(self, *arguments: Any) -> None:
        self._add("entries", len(arguments[0].entries))

    def _disassembled(self, _image: Any, ranges: Any) -> None:
        self._add("functions", len(ranges))


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    return Work(monkeypatch)


def converted(profile: Path, folder: Path) -> Conversion:
    return convert(
        ConvertOptions(
            (profile,),
            BINARY,
            outputs=outputs(llvm=folder / "llvm.prof", fdata=folder / "out.fdata"),
        )
    )


def test_entries_are_hashed_once(work: Work, tmp_path: Path) -> None:
    tallies = converted(RECORDING, tmp_path).tallies
    assert work.done["entries"] == tallies["branches_read"]


def test_functions_are_disassembled_once_and_only_where_code_ran(
    work: Work, tmp_path: Path
) -> None:
    converted(RECORDING, tmp_path)
    opened = Program.open(BINARY)
    assert 0 < work.done["functions"] < len(opened.regions)


def test_a_unit_is_read_once_for_a_question_and_only_where_code_ran(
    work: Work, tmp_path: Path
) -> None:
    converted(RECORDING, tmp_path)
    debug = DebugInfo.open(Program.open(BINARY).image)
    units = len(debug._symbolizer.dwarf.units)
    for question in ("subprogram_ranges", "functions_around", "read_line_table"):
        assert 0 < work.done[question] <= units


def test_work_after_counting_does_not_grow_with_samples(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from tiling import tile

    done, rows = [], []
    for times in (1, 5):
        work.done.clear()
        tiled = tmp_path / f"{times}.perf.data"
        tile(RECORDING, times, tiled)
        rows.append(len(converted(tiled, tmp_path).counts))
        done.append(dict(work.done))
    once, often = done
    assert often.pop("entries") == 5 * once.pop("entries")
    assert often == once
    assert rows[0] == rows[1]


def test_threads_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the batches are cut, how many threads count them, and whichever is ahead."""
    from lbr2pgo.counting import count as counting
    from lbr2pgo.sources.perf_data import reader as perf_data

    converted(RECORDING, tmp_path)
    whole = [(tmp_path / name).read_bytes() for name in ("llvm.prof", "out.fdata")]
    for size, threads in ((1, 1), (7, 2), (100, 3)):
        monkeypatch.setattr(perf_data, "BATCH_SAMPLES", size)
        monkeypatch.setattr(counting, "threads", lambda threads=threads: threads)
        converted(RECORDING, tmp_path)
        assert [(tmp_path / name).read_bytes() for name in ("llvm.prof", "out.fdata")] == whole
