"""Lists for a linker: read back, and obeyed by lld."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from builders.fixtures import ROOT, Run, Tool
from builders.recordings import binary, recording

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.dumping.profile import lines
from lbr2pgo.profiles.linker.linker_lists import CALLS, SYMBOLS, ListKind, ListReader, write
from lbr2pgo.profiles.registry import output, read_written
from lbr2pgo.program.program import Program
from lbr2pgo.support.errors import InputError


def test_a_list_is_read_back_and_shown_by_function(tmp_path: Path) -> None:
    path = tmp_path / "calls"
    write(CALLS, ["main f 7", "f g 1"], path)
    assert ListReader(CALLS).recognises(path.read_bytes())
    assert not ListReader(SYMBOLS).recognises(path.read_bytes())
    assert list(lines(path))[1:] == ["main f 7", "f g 1"]
    assert list(lines(path, "g")) == ["f g 1"]
    with pytest.raises(InputError, match="holds nothing of 7"):
        lines(path, "7")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, tool: Tool, run: Run) -> Path:
    """A program that GCC compiled, with the files .symbols and .calls."""
    program = tmp_path_factory.mktemp("lists") / "interp"
    run(tool("gcc-12"), "-O2", "-c", "-ffunction-sections", ROOT / "testbins" / "src" / "interp.c",
        "-o", program.with_suffix(".o"))  # fmt: skip
    linked(program, tool, run)
    recording = program.with_suffix(".data")
    run(sys.executable, "-m", "lbr2pgo", "record", "--emulate", "-c", 10007, "-o", recording, "--",
        program)  # fmt: skip
    run(sys.executable, "-m", "lbr2pgo", "convert", recording, "--binary", program,
        "--symbol-order", program.with_suffix(".symbols"),
        "--call-graph-order", program.with_suffix(".calls"))  # fmt: skip
    return program


def linked(program: Path, tool: Tool, run: Run, *flags: object) -> list[str]:
    """Its functions in the order in which they stand."""
    path = program if not flags else program.with_suffix(".laid")
    run(tool("clang-22"), "-fuse-ld=lld", program.with_suffix(".o"), "-o", path, *flags)
    said = run(tool("llvm-nm-22"), "-n", path).stdout
    return [line.split()[-1] for line in said.splitlines() if " t " in line.lower()]


def test_lld_puts_functions_into_the_order(recorded: Path, tool: Tool, run: Run) -> None:
    order = recorded.with_suffix(".symbols")
    wanted = order.read_text().splitlines()[1:]
    assert len(wanted) > 3
    placed = linked(recorded, tool, run, "-Wl,--fatal-warnings",
                    f"-Wl,--symbol-ordering-file={order}")  # fmt: skip
    assert [name for name in placed if name in wanted] == wanted


def test_lld_orders_by_the_calls(recorded: Path, tool: Tool, run: Run) -> None:
    calls = recorded.with_suffix(".calls")
    rows = [line.split() for line in calls.read_text().splitlines()[1:]]
    assert all(len(row) == 3 and int(row[2]) for row in rows)
    assert ["compile_expression", "next_token"] in [row[:2] for row in rows]
    placed = linked(recorded, tool, run, "-Wl,--fatal-warnings",
                    f"-Wl,--call-graph-ordering-file={calls}")  # fmt: skip
    called = {name for row in rows for name in row[:2]}
    assert {name for name in placed if name in called} == called
    assert placed != linked(recorded, tool, run)


def test_functions_that_share_their_name_are_counted_and_left_out(tmp_path: Path) -> None:
    written = (output("symbol_order", tmp_path / "order"),)
    name = "shapes.static"
    done = convert(ConvertOptions((recording(name),), binary(name), written))
    ran, named = done.tallies["functions_ran"], done.tallies["functions_named"]
    assert (ran - named, done.tallies["functions_named/two_of_one_name"]) == (1, 1)
    assert len((tmp_path / "order").read_text().splitlines()) - 1 >= named


@pytest.mark.parametrize("kind", [SYMBOLS, CALLS])
def test_lines_about_functions_that_are_not_there_are_stale(kind: ListKind, tmp_path: Path) -> None:
    rest = " 3" if kind is CALLS else ""
    names = ["main", "main", "gone", "gone", "away", "main"]
    lines = [" ".join(names[i : i + kind.names]) + rest for i in range(0, 6, kind.names)]
    write(kind, lines, tmp_path / "list")
    written = read_written(tmp_path / "list")
    assert written is not None
    stale = written.staleness(Program.open(binary("interp.pie")))
    assert stale is not None
    expected = pytest.approx(0.5 if kind is SYMBOLS else 2 / 3)
    assert (stale.share, stale.functions) == (expected, expected)
    assert set(stale.missing) == {"gone", "away"}


@pytest.mark.parametrize("has_sections", [False, True])
def test_an_order_that_the_linker_could_not_follow_is_told(
    has_sections: bool, tmp_path: Path, tool: Tool, run: Run
) -> None:
    source, program, order = tmp_path / "p.c", tmp_path / "p", tmp_path / "order"
    names = [f"f{number}" for number in range(12)]
    functions = [f"int {name}(int x) {{ return x + {len(name)}; }}" for name in names]
    source.write_text("\n".join([*functions, "int main(void) { return 0; }"]))
    write(SYMBOLS, [*reversed(names), "gone"], order)
    flags = ["-ffunction-sections"] if has_sections else []
    by = f"-Wl,--symbol-ordering-file={order},--no-warn-symbol-ordering"
    run(tool("clang-22"), *flags, "-fuse-ld=lld", by, source, "-o", program)
    written = read_written(order)
    assert written is not None
    stale = written.staleness(Program.open(program))
    assert stale is not None
    assert stale.followed == has_sections
    assert stale.missing == ("gone",)
    for words in ([], ["--format", "line"]):
        said = run(
            sys.executable, "-m", "lbr2pgo", "check", order, "--binary", program, *words
        ).stdout  # fmt: skip
        assert ("compile with -ffunction-sections" in said) != has_sections


def test_few_functions_do_not_tell_whether_an_order_is_followed(tmp_path: Path) -> None:
    order = tmp_path / "order"
    write(SYMBOLS, ["main", "run"], order)
    written = read_written(order)
    assert written is not None
    stale = written.staleness(Program.open(binary("interp.pie")))
    assert stale is not None
    assert stale.followed is None
