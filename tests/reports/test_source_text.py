from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from builders.recordings import PIE, RECORDING, TESTBINS

from lbr2pgo.analyses.source_view import LineFigures
from lbr2pgo.cli import main
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.reports.source_files import SourceFiles
from lbr2pgo.reports.source_text import source_table
from lbr2pgo.support.regular_file import read_regular

MOVED = (".", str(TESTBINS))
SOURCE = TESTBINS / "src" / "interp.c"


def view(**changes: object):
    options = ReportOptions(
        (RECORDING,), PIE, only=("function",), source=True, **changes  # type: ignore[arg-type]
    )  # fmt: skip
    table = make_report(options).functions[0].source
    assert table is not None
    return table


def test_each_line_stands_beside_what_it_did() -> None:
    table = view(source_dirs=(MOVED,))
    text = SOURCE.read_text().splitlines()
    ran = 0
    for row in table.records():
        file, _, line = str(row["line"]).partition(":")
        assert file == "interp.c"
        assert row["text"] == text[int(line) - 1].expandtabs(4)
        ran += bool(row["count"])
    assert ran > 5
    assert not any("not found" in note or "changed" in note for note in table.notes)


def test_the_debug_information_says_what_the_file_was() -> None:
    program = Program.open(PIE)
    ((path, origin),) = DebugInfo.open(program.image).origins(program.functions.start).items()
    assert (path, origin.directory) == ("./src/interp.c", ".")
    assert origin.digest == hashlib.md5(SOURCE.read_bytes()).digest()


def test_a_file_that_changed_since_the_build_is_shown_where_that_is_asked(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "interp.c").write_text(SOURCE.read_text() + "\n// later\n")
    moved = ((".", str(tmp_path)),)
    table = view(source_dirs=moved)
    assert any("not shown: it has changed" in note for note in table.notes)
    assert set(table.column("text")) == {None}
    table = view(source_dirs=moved, changed_source=True)
    assert any("has changed" in note for note in table.notes)
    assert None not in table.column("text")


def test_what_is_wrong_with_a_file_is_said_of_one_function_only() -> None:
    options = ReportOptions((RECORDING,), PIE, only=("function",), source=True, views=3)
    notes = [n for view in make_report(options).functions for n in view.source.notes]  # type: ignore[union-attr]
    assert sum("interp.c" in note for note in notes) == 1


def test_a_file_of_several_functions_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Counter[Path]()

    def counted(path: Path, most: int) -> bytes:
        read[path] += 1
        return read_regular(path, most)

    monkeypatch.setattr("lbr2pgo.reports.source_files.read_regular", counted)
    options = ReportOptions(
        (RECORDING,), PIE, only=("function",), source=True, source_dirs=(MOVED,), views=3
    )
    of_interp = [
        function.name
        for function in make_report(options).functions
        if function.source
        and any("interp.c" in str(line) for line in function.source.column("line"))
    ]
    assert len(of_interp) > 1
    assert read[SOURCE] == 1


def test_a_missing_file_is_said_and_its_lines_are_shown_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = view()
    assert any("./src/interp.c was not found" in note for note in table.notes)
    assert set(table.column("text")) == {None}
    assert all(table.column("count"))


def test_in_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["report", str(RECORDING), "--binary", str(PIE), "--function", "run", "--source",
             "--source-dir", "=".join(MOVED), "--only", "hot-functions,function"]  # fmt: skip
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "Source of run" in shown
    assert "interp.c:" in shown
    assert "push: *top++" in shown


@pytest.mark.parametrize("text", ["=x", "/build="])
def test_a_moved_directory_needs_both_ends(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["report", "x", "--source-dir", text])
    assert "FROM=TO" in capsys.readouterr().err


def figures(lines: dict[int, int]) -> LineFigures:
    size = len(lines)
    nothing = np.zeros(size, np.uint64)
    return LineFigures(
        np.zeros(size, np.int64), np.array([*lines]), np.array([*lines.values()], np.uint64),
        nothing, nothing, nothing, np.zeros(size), ("/a.c",),
        has_cycles=False, says_predictions=True,
    )  # fmt: skip


def shown(lines: dict[int, int], text: bytes, tmp_path: Path) -> list[object]:
    (tmp_path / "a.c").write_bytes(text)
    table = source_table("f", figures(lines), SourceFiles((("/", str(tmp_path)),)), {})
    return [(row["line"], row["count"], row["text"]) for row in table.records()]


def test_what_stands_around_lines_that_ran_is_shown(tmp_path: Path) -> None:
    text = b"\n".join(b"%d" % (i + 1) for i in range(30))
    found = shown({4: 7, 20: 0, 29: 1}, text, tmp_path)
    assert [line for line, _, _ in found] == [f"a.c:{i}" for i in [*range(1, 8), *range(26, 31)]]
    assert ("a.c:4", 7, "4") in found
    assert ("a.c:5", None, "5") in found


def test_a_file_that_became_shorter(tmp_path: Path) -> None:
    assert shown({9: 1}, b"one\ntwo", tmp_path) == [("a.c:9", 1, None)]


def test_text_of_any_encoding(tmp_path: Path) -> None:
    found = shown({1: 1}, b"\tcaf\xe9\r\n", tmp_path)
    assert found[0] == ("a.c:1", 1, "    caf\ufffd")
