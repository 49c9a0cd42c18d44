"""`lbr2pgo convert`: what it writes, what it counts, and what it says."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from builders.perf_data import Entry
from builders.recordings import (
    PIE,
    RECORDING,
    STATIC,
    STATIC_BUILD_ID,
    STATIC_RECORDING,
    TESTBINS,
    recorded,
    recording_of,
)

from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.profiles.bolt.fdata import fdata_text
from lbr2pgo.profiles.llvm import extbinary as llvm_extbinary
from lbr2pgo.profiles.llvm import text as llvm_text
from lbr2pgo.profiles.registry import formats
from lbr2pgo.sources.saved_counts import read_counts
from lbr2pgo.support.errors import InputError

OUTPUTS = tuple(form.output.options()[0].flag.word for form in formats() if not form.forms[0].needs)


def outputs(folder: Path) -> list[object]:
    """Options that ask for every output, each named after its option."""
    folder.mkdir(exist_ok=True)
    return [word for option in OUTPUTS for word in (option, folder / option.strip("-"))]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def rows(counts: BranchCounts) -> list[str]:
    return list(counts.rows())


def step(out: str, title: str) -> int:
    """What the printed table says of a step."""
    (line,) = [line for line in out.splitlines() if line.startswith(title + " ")]
    return int(line.removeprefix(title).split()[0].replace(",", ""))


# ---------------------------------------------------------------------------- outputs


def test_one_pass_writes_what_each_output_alone_would(command, tmp_path: Path) -> None:
    together, alone = tmp_path / "together", tmp_path / "alone"
    assert command("convert", RECORDING, "--binary", PIE, *outputs(together)).code == 0
    alone.mkdir()
    for option in OUTPUTS:
        output = alone / option.strip("-")
        assert command("convert", RECORDING, "--binary", PIE, option, output).code == 0
    written = contents(together)
    assert set(written) == {option.strip("-") for option in OUTPUTS}
    alone_written = contents(alone)
    for name in set(written) - {"counts"}:
        assert alone_written[name] == written[name]
    counts = [read_counts(folder / "counts") for folder in (together, alone)]
    assert rows(counts[0]) == rows(counts[1])


def test_without_an_output_only_the_summary_is_printed(
    command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = command("convert", RECORDING, "--binary", PIE)
    assert answer.code == 0
    assert step(answer.out, "samples read") == 128
    assert "with a branch stack" in answer.out
    assert "attributed to a function" in answer.out
    assert list(tmp_path.iterdir()) == []


def test_the_summary_names_the_largest_loss_and_its_cure(command) -> None:
    answer = command("convert", RECORDING, "--binary", PIE)
    assert "lost 32: between addresses outside the image" in answer.out
    assert "→ nothing: libraries and the kernel" in answer.out


def test_what_lies_outside_is_listed_by_mapped_file(command, tmp_path: Path) -> None:
    summary = tmp_path / "summary"
    answer = command("convert", RECORDING, "--binary", PIE, "--summary-json", summary)
    assert "        ld-linux-x86-64.so.2 32\n" in answer.out
    steps = {row["step"]: row for row in json.loads(summary.read_text())["waterfall"]}
    assert steps["branches_in_image"]["outside"] == {"ld-linux-x86-64.so.2": 32}


@pytest.mark.parametrize(
    ("recording", "program"),
    [(RECORDING, PIE), (TESTBINS / "recordings/aarch64-interp.pie.perf.data",
                        TESTBINS / "aarch64/interp.pie")],
)  # fmt: skip
def test_outputs_are_the_same_with_any_number_of_threads(
    command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recording: Path, program: Path
) -> None:
    for size in ("code.decode._AT_ONCE", "blocks.disassembly._AT_ONCE", "blocks.references._PIECE"):
        monkeypatch.setattr(f"lbr2pgo.program.{size}", 256)  # so that there are many parts
    found = []
    for threads in (1, 2, 3, 8):
        out = tmp_path / str(threads)
        words = ("convert", recording, "--binary", program, "--threads", threads)
        assert command(*words, *outputs(out)).code == 0
        found.append(contents(out))
    assert found[0]
    assert all(each == found[0] for each in found[1:])


def test_no_threads_are_refused(command) -> None:
    answer = command("convert", RECORDING, "--binary", PIE, "--threads", 0)
    assert answer.code == 2
    assert "no thread may work" in answer.err


def test_both_forms_of_the_sample_profile_say_the_same(command, tmp_path: Path) -> None:
    text, binary = tmp_path / "text", tmp_path / "binary"
    convert = ("convert", RECORDING, "--binary", PIE, "--llvm")
    assert command(*convert, text).code == 0
    assert command(*convert, binary, "--llvm-format", "extbinary").code == 0
    stream = io.BytesIO()
    llvm_text.write(llvm_extbinary.read(binary), stream)
    assert stream.getvalue() == text.read_bytes()


def test_llvm_reads_both_forms(
    command, tmp_path: Path, tool: Callable[[str], str], run: Callable[..., object]
) -> None:
    llvm_profdata = tool("llvm-profdata-22")
    for form in ("text", "extbinary"):
        profile, again = tmp_path / form, tmp_path / f"{form}.again"
        convert = ("convert", RECORDING, "--binary", PIE, "--llvm", profile)
        assert command(*convert, "--llvm-format", form).code == 0
        run(llvm_profdata, "merge", "--sample", f"--{form}", profile, "-o", again)
        assert again.read_bytes() == profile.read_bytes()


def test_hashed_names_and_symbol_list_are_asked_for(
    command, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    plain, hashed = tmp_path / "plain", tmp_path / "hashed"
    convert = ("convert", RECORDING, "--binary", PIE, "--llvm-format", "extbinary", "--llvm")
    assert command(*convert, plain).code == 0
    assert command(*convert, hashed, "--md5", "--symbol-list").code == 0
    assert b"next_token" in plain.read_bytes()
    profile = llvm_extbinary.read(hashed)
    assert all(isinstance(function.name, int) for function in profile.functions.values())
    assert profile.symbols is not None
    assert "main" in profile.symbols
    assert llvm_extbinary.read(plain).symbols is None


@pytest.mark.parametrize("option", ["--md5", "--symbol-list", "--cold-symbols"])
def test_the_text_form_holds_none_of_these(command, option: str, tmp_path: Path) -> None:
    output = tmp_path / "out"
    answer = command("convert", RECORDING, "--binary", PIE, "--llvm", output, option)
    assert answer.code == 2
    assert "Add --llvm-format extbinary." in answer.err
    assert not output.exists()


def test_one_list_of_symbols_is_enough(command, tmp_path: Path) -> None:
    output = tmp_path / "out"
    asked = ("--llvm-format", "extbinary", "--symbol-list", "--cold-symbols")
    answer = command("convert", RECORDING, "--binary", PIE, "--llvm", output, *asked)
    assert answer.code == 2
    assert "--symbol-list has all that --cold-symbols has\nLeave one of them out." in answer.err
    assert not output.exists()


@pytest.mark.parametrize(
    "words", [("--md5",), ("--llvm-format", "extbinary"), ("--symbol-list", "--fdata", "x")]
)
def test_an_option_of_an_output_that_is_not_asked_for(
    command, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = command("convert", RECORDING, "--binary", PIE, *words)
    assert answer.code == 0
    note = f"note: {words[0]} says how to write an output that is not asked for: add --llvm OUT"
    assert note in answer.err
    assert [path.name for path in tmp_path.iterdir()] == (["x"] if "x" in words else [])


def test_an_output_on_standard_output_is_not_mixed_with_the_table(command) -> None:
    answer = command("convert", RECORDING, "--binary", PIE, "--llvm", "-")
    assert answer.code == 0
    profile = llvm_text.parse(io.BytesIO(answer.out.encode()), "out")
    assert "run" in profile.functions
    assert step(answer.err, "samples read") == 128


def test_the_same_input_gives_the_same_bytes(command, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        assert command("convert", RECORDING, "--binary", PIE, *outputs(folder)).code == 0
    assert contents(first) == contents(second)


# ---------------------------------------------------------------------------- saved counts


def test_saved_counts_give_the_same_outputs(command, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    before = command("convert", RECORDING, "--binary", PIE, *outputs(first))
    after = command("convert", first / "counts", "--binary", PIE, *outputs(second))
    assert (before.code, after.code) == (0, 0)
    assert contents(first) == contents(second)
    assert after.out == before.out


def test_counts_of_another_build_are_refused(command, tmp_path: Path) -> None:
    saved = tmp_path / "counts"
    assert command("convert", RECORDING, "--binary", PIE, "--counts", saved).code == 0
    answer = command("convert", saved, "--binary", STATIC, "--fdata", tmp_path / "out")
    assert answer.code == 2
    assert "counts of another build" in answer.err
    assert not (tmp_path / "out").exists()


def test_preaggregated_traces_give_the_same_outputs(command, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert command("convert", STATIC_RECORDING, "--binary", STATIC, *outputs(first)).code == 0
    traces = first / "preaggregated"
    assert command("convert", traces, "--binary", STATIC, *outputs(second)).code == 0
    before, after = contents(first), contents(second)
    for name in ("llvm", "fdata", "preaggregated"):
        assert before[name] == after[name], name


@pytest.mark.slow
def test_perf2bolt_makes_the_same_of_the_traces_as_of_the_recording(
    command, tmp_path: Path, corpus, tool, run
) -> None:
    """The emulator shows three of its jumps going to themselves, which only perf2bolt believes."""
    binary, traces, made = corpus("sqlite/sq.zst"), tmp_path / "traces", tmp_path / "made.fdata"
    convert = ("convert", corpus("sqlite/sq.perf.data.zst"), "--binary", binary)
    fdata = tmp_path / "fdata"
    asked = (*convert, "--preaggregated", traces, "--fdata", fdata)
    assert command(*asked, "--compat", "perf2bolt").code == 0
    run(tool("perf2bolt-22"), "-pa", "-p", traces, "-o", made, binary)
    expected = corpus("sqlite/sq.perf2bolt-22.fdata.zst").read_text().splitlines()
    assert sorted(made.read_text().splitlines()) == sorted(expected)
    assert fdata.read_text().splitlines() == expected
    assert command(*asked).code == 0
    run(tool("perf2bolt-22"), "-pa", "-p", traces, "-o", made, binary)
    assert sorted(made.read_text().splitlines()) == sorted(fdata.read_text().splitlines())
    lost = sorted(set(expected) - set(made.read_text().splitlines()))
    assert len(lost) == len(expected) - len(made.read_text().splitlines())
    edges = [line.split() for line in lost]
    assert [(edge[1:3] == edge[4:6], int(edge[7])) for edge in edges] == [
        (True, 746), (True, 2704), (True, 1),
    ]  # fmt: skip


# ---------------------------------------------------------------------------- several profiles


def test_several_profiles_add_up_in_any_order(command, tmp_path: Path) -> None:
    pie = TESTBINS / "recordings" / "x86-64-shapes.pie.perf.data"
    binary = TESTBINS / "x86-64" / "shapes.pie"
    saved = tmp_path / "saved"
    assert command("convert", pie, "--binary", binary, "--counts", saved).code == 0
    for name, profiles in (("ab", (pie, saved)), ("ba", (saved, pie))):
        words = ("convert", *profiles, "--binary", binary, *outputs(tmp_path / name))
        answer = command(*words)
        assert answer.code == 0
        assert step(answer.out, "samples read") == 2 * 155
    assert contents(tmp_path / "ab") == contents(tmp_path / "ba")
    once, twice = read_counts(saved), read_counts(tmp_path / "ab" / "counts")
    assert (2 * once.count).tolist() == twice.count.tolist()
    assert (2 * once.mispredicted).tolist() == twice.mispredicted.tolist()
    assert once.end.tolist() == twice.end.tolist()


def test_one_bad_profile_among_several_stops_the_run(command, tmp_path: Path) -> None:
    output = tmp_path / "out"
    answer = command("convert", RECORDING, tmp_path / "missing", "--binary", PIE, "--fdata", output)
    assert answer.code == 2
    assert f"{tmp_path / 'missing'}: can't be read" in answer.err
    assert not output.exists()


def test_counts_of_two_builds_do_not_go_together(command, tmp_path: Path, tool, run) -> None:
    nameless = tmp_path / "nameless"
    run(tool("llvm-objcopy-22"), "--remove-section=.note.gnu.build-id", STATIC, nameless)
    for name, binary, recording in (("a", PIE, RECORDING), ("b", STATIC, STATIC_RECORDING)):
        words = ("convert", recording, "--binary", binary, "--counts", tmp_path / name)
        assert command(*words).code == 0
    answer = command("convert", tmp_path / "a", tmp_path / "b", "--binary", nameless)
    assert answer.code == 2
    assert "different builds" in answer.err


# ---------------------------------------------------------------------------- what to count

FORWARD: tuple[Entry, ...] = ((0x22A8DA, 0x22A8C0, 2), (0x22A8DA, 0x22A8C0, 1))
"""Twice around the same loop."""


def test_an_event_is_chosen_with_or_without_its_modifiers(command) -> None:
    for name in ("taken-branches:u", "taken-branches"):
        answer = command("convert", RECORDING, "--binary", PIE, "--event", name)
        assert answer.code == 0
        assert step(answer.out, "chosen by event and process") == 128


def test_an_unknown_event_is_answered_with_those_recorded(command) -> None:
    answer = command("convert", RECORDING, "--binary", PIE, "--event", "cycles")
    assert answer.code == 2
    assert f"{RECORDING}: no event is called cycles\nRecorded were: taken-branches:u" in answer.err


def test_a_process_is_chosen(command, tmp_path: Path) -> None:
    for pid in (10, 20):
        (tmp_path / str(pid)).write_bytes(recorded([FORWARD] * pid, pid=pid))
    profiles = (tmp_path / "10", tmp_path / "20")
    words = ("convert", *profiles, "--binary", STATIC, "--counts", tmp_path / "out")
    for chosen, samples in (((10,), 10), ((20,), 20), ((10, 20), 30), ((), 30)):
        pids = ["--pid", ",".join(map(str, chosen))] if chosen else []
        answer = command(*words, *pids)
        assert answer.code == 0
        assert step(answer.out, "chosen by event and process") == samples
        assert int(read_counts(tmp_path / "out").branches().count.sum()) == 2 * samples
    again = command(*words, "--pid", "10", "--pid", "20")
    assert step(again.out, "chosen by event and process") == 30


def test_a_process_that_was_not_recorded_leaves_nothing(command, tmp_path: Path) -> None:
    output = tmp_path / "out"
    answer = command("convert", RECORDING, "--binary", PIE, "--pid", 1, "--fdata", output)
    assert answer.code == 2
    assert "the profile would be empty" in answer.err
    assert "leave out --pid to count every process" in answer.err
    assert "lost 128: of another process" in answer.out
    assert not output.exists()


def test_a_build_id_stands_for_a_binary_that_lost_its_own(
    command, tmp_path: Path, tool, run
) -> None:
    renamed = tmp_path / "renamed"
    run(tool("llvm-objcopy-22"), "--remove-section=.note.gnu.build-id", PIE, renamed)
    words = ("convert", RECORDING, "--binary", renamed)
    assumed = command(*words)
    assert "by segments and branches" in assumed.err
    build_id = "e75cc8c58b5ba6370d0bc41415fe986ec5ab974e"
    for written in (build_id, build_id.upper()):
        answer = command(*words, "--build-id", written)
        assert answer.code == 0
        assert step(answer.out, "in this image") == 4064
        assert "by segments" not in answer.err


@pytest.mark.parametrize("text", ["xyz", "abc", "", "0x12"])
def test_a_build_id_is_hexadecimal(command, text: str) -> None:
    answer = command("convert", RECORDING, "--binary", PIE, "--build-id", text)
    assert answer.code == 2
    assert "whole bytes in hexadecimal" in answer.err


def test_what_was_assumed_of_the_image_is_said(command, tmp_path: Path) -> None:
    recording = tmp_path / "perf.data"
    recording.write_bytes(recorded([FORWARD]))
    answer = command("convert", recording, "--binary", STATIC)
    assert answer.code == 0
    assert "matched /elsewhere/interp.static by name" in answer.err
    assert command("convert", RECORDING, "--binary", PIE).err == ""  # by build-id


def test_an_indirect_jump_that_was_not_logged(command, tmp_path: Path) -> None:
    """--strict and --compat llvm-profgen draw the line elsewhere."""
    traces = tmp_path / "traces"
    # main calls `run` at 0x22a8d0 and goes on to the jne at 0x22a8da.
    traces.write_text("F 22a8c0 22a8da 7\nB 22a8da 22a8c0 7 0\n")
    words = ("convert", traces, "--binary", STATIC)
    answer = command(*words)
    assert step(answer.out, "valid fall-throughs") == 7
    assert "7 valid fall-throughs run over a call" in answer.out
    for option in (("--strict",), ("--compat", "llvm-profgen")):
        rejecting = command(*words, *option)
        assert step(rejecting.out, "valid fall-throughs") == 0
        assert "lost 7: that run across a call" in rejecting.out
    assert command(*words, "--compat", "perf2bolt").out == answer.out


def test_compatibility_with_perf2bolt_changes_the_fdata_only(
    command, tmp_path: Path, corpus
) -> None:
    binary = TESTBINS / "x86-64" / "shapes.static"
    recording = TESTBINS / "recordings" / "x86-64-shapes.static.perf.data"
    written = []
    for name, compat in (("plain", ()), ("compat", ("--compat", "perf2bolt"))):
        words = ("convert", recording, "--binary", binary, *outputs(tmp_path / name), *compat)
        assert command(*words).code == 0
        written.append(contents(tmp_path / name))
    for name in ("llvm", "preaggregated"):
        assert written[0][name] == written[1][name]


def test_compatibility_with_an_unknown_tool_is_refused(command) -> None:
    answer = command("convert", RECORDING, "--binary", PIE, "--compat", "gprof")
    assert answer.code == 2
    assert "llvm-profgen" in answer.err
    assert "perf2bolt" in answer.err


# ---------------------------------------------------------------------------- summary


def test_the_summary_as_json(command, tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    answer = command(
        "convert", RECORDING, "--binary", PIE, *outputs(tmp_path / "o"), "--summary-json", path
    )
    steps = {row["step"]: row for row in json.loads(path.read_text())["waterfall"]}
    assert list(steps)[:4] == [
        "samples_read", "samples_selected", "samples_with_stack", "samples_mapped",
    ]  # fmt: skip
    assert {"runs_in_function", "runs_located", "llvm_runs", "fdata_branches"} <= set(steps)
    for row in steps.values():
        assert step(answer.out, row["title"]) == row["count"]
        if row["before"] is not None:
            assert row["count"] + sum(loss["count"] for loss in row["losses"]) == row["before"]
            assert row["share"] == pytest.approx(row["count"] / row["before"])
        assert all(loss["reason"] and loss["cure"] for loss in row["losses"])


@pytest.mark.parametrize("recording", [RECORDING, STATIC_RECORDING])
def test_the_summary_follows_its_schema(command, tmp_path: Path, recording: Path) -> None:
    path = tmp_path / "summary.json"
    binary = PIE if recording == RECORDING else STATIC
    assert command("convert", recording, "--binary", binary, "--summary-json", path,
                   *outputs(tmp_path / "o")).code == 0  # fmt: skip
    schema = json.loads((TESTBINS.parent / "docs/schemas/summary.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(summary := json.loads(path.read_text()), schema)
    assert any(step["losses"] for step in summary["waterfall"])
    del summary["waterfall"][0]["count"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(summary, schema)


def test_the_summary_as_json_on_standard_output_stands_alone(command) -> None:
    answer = command("convert", RECORDING, "--binary", PIE, "--summary-json", "-")
    assert answer.code == 0
    assert json.loads(answer.out)["waterfall"][0]["count"] == 128
    assert step(answer.err, "samples read") == 128


def test_the_summary_as_json_of_an_empty_profile(command, tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    words = ("convert", RECORDING, "--binary", PIE, "--pid", 1, "--summary-json", path)
    assert command(*words).code == 2
    steps = json.loads(path.read_text())["waterfall"]
    assert steps[1]["count"] == 0
    assert steps[1]["losses"][0]["count"] == 128


def test_timings_go_to_stderr(command) -> None:
    answer = command("convert", RECORDING, "--binary", PIE, "--timings")
    for stage in ("open the inputs", "read and count", "replay", "all stages"):
        assert stage in answer.err
        assert stage not in answer.out


# ---------------------------------------------------------------------------- standard input


@pytest.mark.parametrize(
    "start", [("-m", "lbr2pgo"), ("-c", "from lbr2pgo.cli import main; main()")]
)
def test_a_profile_from_standard_input(command, tmp_path: Path, start: tuple[str, ...]) -> None:
    assert command("convert", RECORDING, "--binary", PIE, "--fdata", tmp_path / "a").code == 0
    words = ["convert", "-", "--binary", PIE, "--fdata", tmp_path / "b"]
    done = subprocess.run(
        [sys.executable, *start, *map(str, words)],
        input=RECORDING.read_bytes(), capture_output=True, check=True,
    )  # fmt: skip
    assert b"samples read" in done.stdout
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert fdata_text.read(tmp_path / "b").branches is not None


def test_a_profile_from_a_named_pipe(command, tmp_path: Path) -> None:
    """As `<(zstdcat perf.data.zst)` gives one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(RECORDING.read_bytes()))
    writer.start()
    answer = command("convert", pipe, "--binary", PIE)
    writer.join()
    assert answer.code == 0
    assert step(answer.out, "samples read") == 128


@pytest.mark.parametrize(
    ("content", "code"), [(RECORDING.read_bytes(), 0), (RECORDING.read_bytes()[:100], 2), (b"", 2)]
)
def test_what_was_read_from_a_pipe_is_not_left_behind(
    tmp_path: Path, content: bytes, code: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lbr2pgo", "convert", "-", "--binary", str(PIE), "--llvm", "-"],
        input=content, capture_output=True, env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == code
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_while_a_pipe_is_read_leaves_nothing_behind(tmp_path: Path, number: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "lbr2pgo", "convert", "-", "--binary", str(PIE), "--llvm", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not os.listdir(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(timeout=60) == 128 + number
    assert os.listdir(tmp_path) == []


def test_what_questions_a_profile_is_said_before_that_it_was_written(
    command, tmp_path: Path
) -> None:
    cut = tmp_path / "cut"
    cut.write_bytes(RECORDING.read_bytes()[:-5000])
    words = ("--binary", PIE, "--llvm", tmp_path / "out")
    answer = command("convert", cut, RECORDING, RECORDING, *words)
    assert answer.code == 0
    again, *damage = answer.err[: answer.err.index("wrote ")].splitlines()
    assert again == f"warning: {RECORDING} is given again: its samples count again"
    assert damage
    assert all(line.startswith(f"warning: {cut}: ") for line in damage)
    assert "truncated" not in answer.err[answer.err.index("wrote ") :]
    assert command("convert", cut, *words, "--quiet").err.splitlines() == damage


def test_an_inference_is_questioned_before_that_it_was_written(command, tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    cut.write_bytes(RECORDING.read_bytes()[:-5000])
    words = ("--binary", PIE, "--no-lbr", "--force", "--llvm", tmp_path / "out")
    answer = command("convert", cut, *words)
    assert f"warning: {cut}: " in answer.err[: answer.err.index("wrote ")]


def test_an_empty_standard_input_is_called_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lbr2pgo", "convert", "-", "--binary", str(PIE)],
        input="", capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "standard-input" in done.stderr
    assert "is empty" in done.stderr


def test_the_message_for_a_profile_that_is_none_comes_as_an_exception() -> None:
    from lbr2pgo.conversion import ConvertOptions

    with pytest.raises(InputError, match="no profile was given"):
        ConvertOptions((), PIE)


# ---------------------------------------------------------------------------- without --binary


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return Path(shutil.copy(STATIC, tmp_path / "app"))


@pytest.mark.parametrize("words", [("convert",), ("report", "--only", "hot-branches")])
def test_commands_take_the_recorded_program_and_say_so(command, program: Path, words) -> None:
    path = recording_of(program)
    plain = command(words[0], path, "--binary", program, *words[1:])
    found = command(words[0], path, *words[1:])
    assert (found.code, plain.code) == (0, 0)
    said = f"the program is {program}, as recorded (build-id {STATIC_BUILD_ID})"
    assert said in found.out + found.err
    assert said not in plain.out + plain.err


def test_no_output_replaces_the_program_that_nobody_named(command, program: Path) -> None:
    before = program.read_bytes()
    path = recording_of(program)
    for words in (
        ("convert", path, "--llvm", program),
        ("convert", path, "--summary-json", program),
        ("report", path, "--html", program),
    ):
        answer = command(*words)
        assert answer.code == 2
        assert "would be written over an input" in answer.err
    assert program.read_bytes() == before
