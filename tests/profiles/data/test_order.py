"""Orders of data that lld follows, and how few pages these then touch."""

from __future__ import annotations

from pathlib import Path

from builders.fixtures import Tool

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.data.order import DataOrderOutput
from lbr2pgo.profiles.registry import read_written
from lbr2pgo.program.program import Program
from lbr2pgo.reports.build import ReportOptions, make_report

from .conftest import NEEDED, built, recorded


def ordered(program: Path, recording: Path, output: Path) -> Path:
    convert(ConvertOptions((recording,), program, outputs=(DataOrderOutput(output),)))
    return output


def pages(program: Path, recording: Path) -> int:
    """That hold what the program needs, of its own data."""
    options = ReportOptions((recording,), program, only=("data",), top=None, libraries=False)
    rows = [row for row in make_report(options).tables[0].records() if row["symbol"] in NEEDED]
    assert len(rows) == len(NEEDED)
    touched = {(int(row["address"]) + at) >> 12 for row in rows for at in (0, 1023)}  # type: ignore[arg-type]
    return len(touched)


def test_what_is_needed_stands_side_by_side(
    program: Path, recording: Path, tool: Tool, tmp_path: Path
) -> None:
    order = ordered(program, recording, tmp_path / "app.order")
    link = f"-Wl,--symbol-ordering-file={order},--no-warn-symbol-ordering"
    moved = built(tmp_path, tool, link)
    before, after = pages(program, recording), pages(moved, recorded(moved, tmp_path / "new.data"))
    assert (before > 9, after <= 6) == (True, True)
    written = read_written(order)
    assert written is not None
    stale = written.staleness(Program.open(moved))
    assert stale is not None
    assert stale.missing == ()


def test_most_accesses_a_byte_come_first(program: Path, recording: Path, tmp_path: Path) -> None:
    lines = ordered(program, recording, tmp_path / "app.order").read_text().splitlines()
    assert lines[0].startswith("# data in its order")
    assert set(NEEDED) <= set(lines)
    assert "set1" not in lines
    assert lines.index("fixed16") < lines.index("fixed0")


def test_names_that_are_gone_are_told(program: Path, recording: Path, tmp_path: Path) -> None:
    order = ordered(program, recording, tmp_path / "app.order")
    order.write_text(order.read_text().replace("set16\n", "gone\n"))
    written = read_written(order)
    assert written is not None
    stale = written.staleness(Program.open(program))
    assert stale is not None
    assert [*stale.missing] == ["gone"]
