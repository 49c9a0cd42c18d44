from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from builders.binary_walks import walked
from builders.perf_data import Event
from builders.recordings import PIE, RECORDING, STATIC, TESTBINS, recorded

from lbr2pgo.cli import main
from lbr2pgo.model.branch_counts import BRANCH, FROM, TO, aggregate
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.profiles.counts import saved_counts
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program

ARGUMENTS = ["report", str(RECORDING), "--binary", str(PIE), "--no-libraries"]


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]):
    def call(*words: str) -> tuple[int, str, str]:
        code = main([*ARGUMENTS, *words])
        out = capfd.readouterr()
        return code, out.out, out.err

    return call


def test_tables(command) -> None:
    code, out, err = command("--full")
    assert (code, err) == (0, "")
    for title in ("Hot branches", "Mispredictions", "Cycles of blocks", "Branch outcomes",
                  "Indirect jumps and calls", "Hyperblocks", "Call stacks"):  # fmt: skip
        assert title in out


def test_only_and_top(command) -> None:
    _, out, _ = command("--only", "hot-branches", "--top", "3")
    assert "Hot branches (3 of 90)" in out
    assert "Mispredictions" not in out


@pytest.mark.parametrize("form", ["speedscope", "firefox"])
def test_viewers_show_names_of_the_source(capfd: pytest.CaptureFixture[str], form: str) -> None:
    shapes = ("x86-64-shapes.pie.perf.data", "shapes.pie")
    recording, binary = TESTBINS / "recordings" / shapes[0], TESTBINS / "x86-64" / shapes[1]
    command = ["report", str(recording), "--binary", str(binary), "--format", form]
    assert main(command) == 0
    text = capfd.readouterr().out
    assert "(anonymous namespace)::Square::area" in text
    assert "_ZN" not in text
    assert main([*command, "--no-demangle"]) == 0
    assert "_ZN" in capfd.readouterr().out


def test_several_names_at_once_or_one_at_a_time(command) -> None:
    for words in (["hot-branches,outcomes"], ["hot-branches", "--only", "outcomes"]):
        _, out, _ = command("--only", *words, "--format", "json")
        names = {table["name"] for table in json.loads(out)["tables"]}
        assert names == {"hot-branches", "outcomes", "outcomes-by-line", "outcomes-to-invert"}


def test_only_takes_tables_too(command) -> None:
    _, out, _ = command("--only", "outcomes-to-invert,latency", "--format", "json")
    names = [table["name"] for table in json.loads(out)["tables"]]
    assert names == ["latency", "latency-by-line", "latency-loops", "latency-rates",
                     "outcomes-to-invert"]  # fmt: skip


def test_the_rates_of_a_function_are_shown_when_asked_for(command) -> None:
    _, out, _ = command("--only", "latency-rates", "--function", "walk")
    assert "Occurrence rates" in out
    _, beside_others, _ = command("--only", "latency-rates,hot-functions")
    assert "Occurrence rates" in beside_others
    for words in (("--full",), ("--only", "latency")):
        assert "Occurrence rates" not in command(*words)[1]


def test_a_function_has_a_chart_of_its_hottest_block(command) -> None:
    _, out, _ = command("--function", "walk", "--only", "latency")
    assert "Cycles of the block at walk" in out
    assert "████" in out


def test_without_an_option_the_answer_fits_a_screen(command, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = command()
    assert len(out.splitlines()) <= 60
    assert max(map(len, out.splitlines())) <= 80
    assert "Hot functions" in out
    assert "--full" in out


def test_top_0_is_all(command) -> None:
    _, out, _ = command("--only", "hot-branches", "--top", "0", "--format", "json")
    assert len(json.loads(out)["tables"][0]["rows"]) == 90


def test_csv(command) -> None:
    code, out, _ = command("--only", "hot-branches", "--format", "csv")
    rows = list(csv.reader(io.StringIO(out, newline="")))
    assert code == 0
    assert rows[0][:2] == ["share", "count"]
    assert len(rows) == 1 + 20
    _, several, _ = command("--only", "hot-branches,latency-by-line", "--format", "csv")
    heads = [line for line in several.split("\r\n") if line.startswith("#")]
    assert heads == ["# hot-branches", "# latency-by-line"]


def test_a_function(command) -> None:
    code, out, _ = command("--function", "walk", "--only", "function")
    assert code == 0
    assert "Function walk" in out
    assert "callq" in out


def test_a_function_that_does_not_exist(command) -> None:
    code, out, err = command("--function", "wolk")
    assert (code, out) == (2, "")
    assert "wolk" in err
    assert "walk" in err
    assert "Traceback" not in err


def test_an_analysis_that_does_not_exist(command) -> None:
    code, _, err = command("--only", "warm-branches")
    assert code == 2
    assert "hot-branches" in err


@pytest.mark.parametrize("top", ["-1", "many"])
def test_a_bad_number_of_rows(command, top: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        command("--top", top)


def test_a_broken_profile(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(RECORDING.read_bytes()[:50])
    assert main(["report", str(broken), "--binary", str(PIE)]) == 2
    assert "Traceback" not in capfd.readouterr().err


def test_a_profile_that_is_not_there(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "/nowhere", "--binary", str(PIE)]) == 2
    assert "/nowhere" in capfd.readouterr().err


@pytest.mark.parametrize("form", ["table", "json"])
def test_a_recording_without_branch_stacks_fails_as_convert_does(
    form: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(recorded([(), ()]))
    inputs = [str(path), "--binary", str(STATIC)]
    assert main(["convert", *inputs]) == 2
    converted = capfd.readouterr()
    assert main(["report", *inputs, "--format", form]) == 2
    reported = capfd.readouterr()
    assert reported.out == ""
    assert "no samples left at the step “with a branch stack”" in reported.err
    assert reported.err == converted.out + converted.err


def test_strict_rejects_what_passes_a_call(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = Program.open(STATIC)
    main_at = program.address_of("main")
    assert main_at is not None
    code = program.instructions_for(np.array([main_at], np.uint64))
    call = np.flatnonzero(code.kind == Kind.CALL)[0]
    traces = tmp_path / "traces"
    traces.write_text(f"F {code.address[call]:x} {code.address[call + 1]:x} 7\n")
    valid = {}
    for words in ([], ["--strict"]):
        line = ["report", str(traces), "--binary", str(STATIC), "--format", "json", *words]
        assert main(line) == 0
        steps = json.loads(capfd.readouterr().out)["waterfall"]
        valid[bool(words)] = {step["step"]: step["count"] for step in steps}["runs_valid"]
    assert valid == {False: 7, True: 0}


def test_a_filtered_recording_is_said_to_be_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "perf.data"
    filters = 1 | 1 << BRANCH_FILTER_BITS["any_call"]
    path.write_bytes(
        recorded([((0x22A8DA, 0x22A8C0, 2),)], event=Event(branch_sample_type=filters))
    )
    assert main(["report", str(path), "--binary", str(STATIC), "--format", "json"]) == 0
    notes = json.loads(capfd.readouterr().out)["notes"]
    assert any("was filtered (user,any_call)" in note for note in notes)


def test_counts_of_other_builds_do_not_go_together(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two sets of saved counts, each of another build-id."""
    nothing, one = np.zeros(1, np.uint64), np.ones(1, np.uint64)
    address = nothing + np.uint64(0x22A8C0)
    known = np.array([BRANCH | FROM | TO], np.uint8)
    paths = []
    for build_id in ("aa" * 20, "bb" * 20):
        counts = aggregate(address, address, nothing, known, one, nothing, build_id=build_id)
        paths.append(str(tmp_path / build_id))
        saved_counts.write(counts, paths[-1])
    assert main(["report", *paths, "--binary", str(STATIC)]) == 2
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert "build" in said


def test_probes_change_no_report(
    tmp_path: Path, tool, run, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nor fdata: the same program without the sections."""
    probed, plain = tmp_path / "probed" / "program", tmp_path / "plain" / "program"
    for path in (probed, plain):
        path.parent.mkdir()
    flags = ("-O2", "-g", "-fpseudo-probe-for-profiling", "-Wl,--emit-relocs")
    run(tool("clang++-22"), *flags, TESTBINS / "src" / "shapes.cpp", "-o", probed)
    sections = ("-R", ".pseudo_probe", "-R", ".pseudo_probe_desc", "-R", ".rela.pseudo_probe")
    run(tool("llvm-objcopy-22"), *sections, probed, plain)
    recording = walked(tmp_path, probed)
    said = []
    for binary in (probed, plain):
        recording.write_text(recording.read_text().replace(str(probed), str(binary)))
        words, fdata = [str(recording), "--binary", str(binary)], binary.parent / "fdata"
        assert main(["convert", *words, "--fdata", str(fdata)]) == 0
        assert main(["report", *words, "--html", str(tmp_path / "page.html")]) == 0
        capfd.readouterr()
        assert main(["report", *words, "--format", "json", "--top", "0"]) == 0
        report = capfd.readouterr().out
        assert len(report) > 10_000
        said.append((fdata.read_bytes(), report.replace(str(binary), "")))
    assert said[0] == said[1]


@pytest.mark.parametrize("words", [("--format", "json"), ("--html", "page.html"), ()])
def test_damage_is_a_warning_above_all_figures(
    words: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    cut = tmp_path / "cut"
    cut.write_bytes(RECORDING.read_bytes()[:-5000])
    assert main(["report", str(cut), "--binary", str(PIE), *words]) == 0
    answer = capfd.readouterr()
    told = answer.err if words else answer.out.split("- interp.pie ran")[0]
    assert f"warning: {cut}: " in told
    if "--html" in words:
        page = (tmp_path / "page.html").read_text()
        assert page.index(f"Warning: {cut}: ") < page.index("interp.pie ran")


def test_the_time_of_each_stage_is_told_when_asked_for(command) -> None:
    code, _, err = command("--verbose", "--only", "hot-branches,latency")
    assert code == 0
    stages = [line[:28].strip() for line in err.splitlines()]
    assert stages == [
        "open the inputs", "open the process's files", "read and count", "replay",
        "plan the second reading", "look at the samples again", "analyse: hot-branches",
        "analyse: latency", "analyse: function", "all stages",
    ]  # fmt: skip
    assert command("--only", "hot-branches")[2] == ""
    assert "compare" in command("--verbose", "--against", str(RECORDING))[2]
