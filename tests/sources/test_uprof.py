"""Reports of AMD uProf, written here after AMD's description of their sections and columns."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from builders.recordings import STATIC

from lbr2pgo.cli import main
from lbr2pgo.counting.count import count
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.sources import formats, open_source
from lbr2pgo.sources.base import LineSource, Sniff
from lbr2pgo.sources.uprof import UprofReport, sniff
from lbr2pgo.support.errors import InputError

COLUMNS = (
    "OVERHEAD (%)", "SAMPLES", "MISPREDICT (%)", "MISPREDICT COUNT", "SOURCE FUNCTION",
    "TARGET FUNCTION", "SOURCE LINE", "TARGET LINE", "SOURCE MODULE", "TARGET MODULE", "PROCESS",
)  # fmt: skip
ROWS = (
    ("50.00", "500", "10.00", "50", "main", "work(int, int)", "/src/a.c:7", "/src/b.c:3", "app",
     "libb.so", "app (PID 7)"),
    ("30.00", "300", "50.00", "150", "work(int, int)", "work(int, int)", "/src/b.c:9", "/src/b.c:5",
     "libb.so", "libb.so", "app (PID 7)"),
    ("20.00", "200", "0.00", "0", "work(int, int)", "main", "/src/b.c:11", "/src/a.c:8", "libb.so",
     "app", "app (PID 7)"),
)  # fmt: skip
HEAD = """\
"AMD uProf (Version: 5.1.701.0)"
,
EXECUTION,
Target Path:,"/home/me/app, the new one"
CPU Family:,0x19

PROFILE DETAILS,
Profile Session Type:,Custom Profile
"""
SUMMARY = "Branch Analysis Summary"


def quoted(cells: tuple[str, ...]) -> str:
    return ",".join(f'"{cell}"' if "," in cell else cell for cell in cells)


def report(
    path: Path,
    *,
    head: str = HEAD,
    title: str = SUMMARY,
    columns: tuple[str, ...] = COLUMNS,
    rows: tuple[tuple[str, ...], ...] = ROWS,
    tail: str = "",
) -> Path:
    lines = [title, quoted(columns), *map(quoted, rows)]
    path.write_text(head + "\n" + "\n".join(lines) + "\n" + tail)
    return path


def content(path: Path) -> list[tuple[object, ...]]:
    found = UprofReport(path).line_branches()
    missed = [None] * len(found) if found.mispredicted is None else found.mispredicted.tolist()
    return list(
        zip(
            found.samples.tolist(), missed, found.source_function, found.target_function,
            found.source_line, found.target_line, found.source_module, found.target_module,
            found.process, strict=True,
        )
    )  # fmt: skip


EXPECTED = [(int(row[1]), int(row[3]), *row[4:]) for row in ROWS]


def test_reads_the_branches_and_the_facts(tmp_path: Path) -> None:
    path = report(tmp_path / "report.csv")
    source = open_source(path)
    assert isinstance(source, LineSource)
    assert content(path) == EXPECTED
    assert source.health() == {}
    assert source.info.details["target path"] == "/home/me/app, the new one"
    assert source.info.details["cpu family"] == "0x19"


@pytest.mark.parametrize("seed", range(4))
def test_columns_come_in_any_order_and_case(tmp_path: Path, seed: int) -> None:
    generator = random.Random(seed)
    order = generator.sample(range(len(COLUMNS)), len(COLUMNS))
    write = generator.choice([str.lower, str.title, lambda name: name + ":", lambda n: f' "{n}"'])
    columns = tuple(write(COLUMNS[i]) for i in order)
    rows = tuple(tuple(row[i] for i in order) for row in ROWS)
    assert content(report(tmp_path / "report.csv", columns=columns, rows=rows)) == EXPECTED


def test_only_three_columns_are_needed(tmp_path: Path) -> None:
    path = report(
        tmp_path / "report.csv",
        columns=("Target Function", "Samples", "Source Function"),
        rows=(("f", "1,234", "g"),),
    )
    assert content(path) == [(1234, None, "g", "f", "", "", "", "", "")]


def test_mispredictions_follow_from_their_share(tmp_path: Path) -> None:
    columns = ("SAMPLES", "MISPREDICT (%)", "SOURCE FUNCTION", "TARGET FUNCTION")
    path = report(tmp_path / "report.csv", columns=columns, rows=(("200", "12.50%", "g", "f"),))
    assert [row[1] for row in content(path)] == [25]


def test_the_details_of_all_processes_stand_for_the_summary(tmp_path: Path) -> None:
    """The summary repeats the hottest of them: counting both would count these twice."""
    columns = ("SAMPLES", "SOURCE FUNCTION", "TARGET FUNCTION")
    detail = (
        "\nLAST BRANCH RECORD FOR PROCESS app (PID - 7)\nSAMPLES,SOURCE FUNCTION,TARGET FUNCTION\n"
        "5,g,f\n4,f,g\n\nLAST BRANCH RECORD FOR PROCESS app (PID - 8)\n"
        "TARGET FUNCTION,SOURCE FUNCTION,SAMPLES\nf,g,3\n\n10 HOTTEST MODULES\nMODULE,CYCLES\na,1\n"
    )
    path = report(tmp_path / "report.csv", columns=columns, rows=(("5", "g", "f"),), tail=detail)
    assert [(row[0], row[2], row[3], row[8]) for row in content(path)] == [
        (5, "g", "f", "app (PID - 7)"), (4, "f", "g", "app (PID - 7)"),
        (3, "g", "f", "app (PID - 8)"),
    ]  # fmt: skip


def test_damaged_rows_are_counted_and_the_rest_is_used(tmp_path: Path) -> None:
    no_numbers = (("1.00", "many", "0", "0", "g", "f"), ("1.00", "1e99", "0", "0", "g", "f"))
    rows = (*ROWS, *no_numbers, ("1.00", "7"))
    path = report(tmp_path / "report.csv", rows=rows)
    assert content(path) == EXPECTED
    assert UprofReport(path).health() == {
        "damaged: rows of branches that are too short": 1,
        "damaged: rows of branches whose numbers can't be read": 2,
    }


@pytest.mark.parametrize("body", ["", "10 HOTTEST FUNCTIONS\nFUNCTION,CYCLES\nf,1\n"])
def test_a_report_without_the_section_is_refused(tmp_path: Path, body: str) -> None:
    path = tmp_path / "report.csv"
    path.write_text(HEAD + body)
    with pytest.raises(InputError, match="holds no table of branches") as error:
        open_source(path)
    assert "--branch-filter" in str(error.value.cure)


@pytest.mark.parametrize(
    ("head", "answer"),
    [
        (b"AMD uProf (Version:4.2.850.0)\n", Sniff.YES),
        (b"\xef\xbb\xbf\"amd uProf (Version:4.2.850.0)\"\r\n,\r\n", Sniff.YES),
        (b"samples,source function,TARGET FUNCTION\n1,f,g\n", Sniff.YES),
        (b"samples,function\n1,f\n", Sniff.NO),
        (b"AMD uProf\0, \n", Sniff.NO),
        (b"", Sniff.NO),
    ],
)  # fmt: skip
def test_recognises_it_by_content(head: bytes, answer: Sniff) -> None:
    assert sniff(head) is answer


def test_no_other_format_takes_it(tmp_path: Path) -> None:
    head = report(tmp_path / "report.csv").read_bytes()
    assert [form.name for form in formats() if form.sniff(head) is Sniff.YES] == [
        "AMD uProf report"
    ]


def test_profiles_need_addresses_and_that_is_said(tmp_path: Path) -> None:
    source = UprofReport(report(tmp_path / "report.csv"))
    with pytest.raises(InputError, match="no addresses") as error:
        count(source, ImageLayout("a.out", None, "x86-64", False, ()))
    assert "perf record -b" in str(error.value.cure)


def test_convert_refuses_it_before_it_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = report(tmp_path / "report.csv"), tmp_path / "out.prof"
    assert main(["convert", str(path), "--binary", str(STATIC), "--llvm", str(out)]) == 2
    assert "no addresses: profiles need the address of each branch" in capsys.readouterr().err
    assert not out.exists()


def test_report_shows_branches_mispredictions_and_call_edges(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = report(tmp_path / "report.csv")
    assert main(["report", str(path), "--format", "csv"]) == 0
    text = capfd.readouterr().out
    assert '0.5,500,main,/src/a.c:7,app,"work(int, int)",/src/b.c:3,libb.so' in text
    assert "150,150,0.5," in text
    assert '500,main,"work(int, int)"' in text
    assert 'work(int, int)","work(int, int)' not in text.split("caller")[-1]


def test_report_in_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(report(tmp_path / "report.csv")), "--only", "hot-branches"]) == 0
    shown = capsys.readouterr().out
    assert "Hot branches" in shown
    assert "no addresses" in shown


def test_an_analysis_that_needs_addresses_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = report(tmp_path / "report.csv")
    assert main(["report", str(path), "--only", "latency"]) == 2
    assert "latency can't be told without addresses" in capsys.readouterr().err


def test_other_inputs_still_need_a_binary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.txt"
    script.write_text("# cmdline : perf\n 0x10/0x20/P/-/-/0\n")
    assert main(["report", str(script)]) == 2
    assert "Name the program with --binary." in capsys.readouterr().err
    assert main(["report", str(report(tmp_path / "report.csv")), str(script)]) == 2
    assert "apart from each other" in capsys.readouterr().err
