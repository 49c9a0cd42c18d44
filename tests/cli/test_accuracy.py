from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders.recordings import RECORDED

from lbr2pgo.cli import accuracy
from lbr2pgo.cli.parser import Parser
from lbr2pgo.model.exact_counts import ExactCounts
from lbr2pgo.support.errors import InputError

TESTBINS = Path(__file__).parents[2] / "testbins"
RECORDINGS = TESTBINS / "recordings"


def run(*arguments: object) -> int:
    parser = Parser()
    accuracy.add_parser(parser.add_subparsers())
    args = parser.parse_args(["accuracy", *map(str, arguments)])
    return int(args.run(args))


def arguments(name: str) -> tuple[object, ...]:
    """Recording, exact counts and binary of a test program, `x86-64/interp.pie` say."""
    recording = RECORDINGS / name.replace("/", "-")
    exact = f"{recording}.exact.npz"
    return f"{recording}.perf.data", "--exact", exact, "--binary", TESTBINS / name


def measured(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    assert run(*words, "--format", "json") == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["/".join(each) for each in RECORDED])
def test_shipped_recordings(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They are sparse, with some hundred samples each; still nothing in them is untrue."""
    found = measured(capsys, *arguments(name))
    assert found["edges"]["overlap"] > 0.85
    assert found["blocks"]["overlap"] > 0.85
    assert found["edges"]["coverage"] > 0.95
    assert found["edges"]["unreal"] == found["blocks"]["unreal"] == 0
    assert 0 < len(found["worst"]) <= 10
    assert sum(each["error"] for each in found["worst"]) <= 1 - found["edges"]["overlap"] + 1e-9


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments("x86-64/interp.pie")) == 0
    out = capsys.readouterr().out
    assert "overlap" in out
    assert "next_token" in out


def test_exact_counts_of_another_program() -> None:
    recording, flag, _, *binary = arguments("x86-64/shapes.static")
    with pytest.raises(InputError, match="holds no counts of"):
        run(recording, flag, RECORDINGS / "x86-64-interp.static.exact.npz", *binary)


def test_exact_counts_of_another_build(tmp_path: Path) -> None:
    recording, flag, exact, *binary = arguments("x86-64/interp.pie")
    counts = ExactCounts.load(Path(str(exact)))
    other = replace(counts, build_ids=tuple("00" * 20 for _ in counts.images))
    other.save(tmp_path / "other.npz")
    with pytest.raises(InputError, match="counts another build"):
        run(recording, flag, tmp_path / "other.npz", *binary)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x86-64/interp.pie", "x86-64/shapes.pie", "x86-64/shapes.static"])
def test_the_error_shrinks_with_the_period(
    name: str,
    tmp_path: Path,
    tool: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    from lbr2pgo.recorders.options import RecordOptions
    from lbr2pgo.recorders.software import record_software

    tool("qemu-x86_64")
    edges, blocks = [], []
    for period in (20011, 1009, 101):
        output, exact = tmp_path / f"{period}.data", tmp_path / f"{period}.npz"
        program = str(TESTBINS / name)
        options = RecordOptions(
            output=output,
            command=(program, "80"),
            period=period,
            depth=32,
            cycles=True,
            emulate=True,
            exact=exact,
        )
        assert record_software(options).exit_code == 0
        found = measured(capsys, output, "--exact", exact, "--binary", program)
        edges.append(found["edges"]["overlap"])
        blocks.append(found["blocks"]["overlap"])
    assert edges == sorted(edges)
    assert blocks == sorted(blocks)
    # Over 3 seeds and environments 0.984 at least.
    assert edges[1] >= 0.97
    assert blocks[1] >= 0.97


@pytest.mark.parametrize(("columns", "has_all"), [("80", False), ("100", True)])
def test_curves_have_the_columns_that_there_is_room_for(
    columns: str,
    has_all: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert run(*arguments("x86-64/interp.pie"), "--curves") == 0
    _, title, head, *rows = capsys.readouterr().out.splitlines()
    assert title == "Overlap by recorder"
    assert ("wrong ways" in head) == has_all
    assert (rows[-1] == "too narrow for: wrong ways") != has_all
    assert len(rows) == 2 * 4 + 2 * 3 * 4 + (not has_all)
    assert max(map(len, (head, *rows))) <= int(columns)


def test_damage_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording, *words = arguments("x86-64/interp.pie")
    (tmp_path / "cut").write_bytes(Path(str(recording)).read_bytes()[:-40_000])
    assert run(tmp_path / "cut", *words) == 0
    assert capsys.readouterr().err.startswith("warning: ")
