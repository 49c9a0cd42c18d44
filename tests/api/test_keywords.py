"""Options are keyword arguments with the command line's names, and go the same way."""

from __future__ import annotations

import inspect
import json
import shutil
from keyword import iskeyword
from pathlib import Path
from typing import Any

import pytest
from builders.recordings import PIE, RECORDING

import lbr2pgo
from lbr2pgo import cli
from lbr2pgo.api.keywords import CheckKeywords, ProcessKeywords, RecordKeywords, SampleKeywords
from lbr2pgo.cli.parser import leaves
from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.profiles.registry import keywords

EXACT = Path(str(RECORDING).replace(".perf.data", ".exact.npz"))
OF_A_TERMINAL = {"help", "help_all", "quiet", "verbose", "color", "format", "timings"}
"""What a command prints, and how."""
NOT_HERE: dict[str, set[str]] = {
    # What the result holds.
    "convert": {"summary_json"},
    "carry": {"committed", "json"},
    # Of pages, and of what is printed; names stay as they are linked. `compare` has the old ones.
    "report": {"full", "html", "push", "no_demangle", "against", "old_binary"},
    "check": set(),
    "accuracy": set(),
    "diff": {"no_demangle"},
    "settle": set(),
    "measure": set(),
    # For ever, in a browser, or not at all.
    "record": {"continuous", "every", "keep", "open", "dry_run"},
}
"""Options of each command that its call does not have."""
CALLS = {
    "record": lbr2pgo.record,
    "convert": lbr2pgo.convert,
    "report": lbr2pgo.report,
    "check": lbr2pgo.check,
    "accuracy": lbr2pgo.accuracy,
    "diff": lbr2pgo.diff,
    "settle": lbr2pgo.settle,
    "carry": lbr2pgo.carry,
    "measure": lbr2pgo.measure,
}
SHARED = {
    "record": (RecordKeywords,),
    "convert": (SampleKeywords,),
    "report": (ProcessKeywords,),
    "check": (CheckKeywords,),
}


def options_of(command: str) -> set[str]:
    """Options of a command, as they are called in Python."""
    parser = cli._parser([command], [command])
    (leaf,) = leaves(parser)
    words = (a.option_strings for a in leaf._actions if a.option_strings)
    long = (next((w for w in each if w.startswith("--")), each[0]) for each in words)
    words = (word.lstrip("-").replace("-", "_") for word in long)
    return {f"{word}_" if iskeyword(word) else word for word in words}


def keywords_of(command: str) -> set[str]:
    named = {
        name
        for name, each in inspect.signature(CALLS[command]).parameters.items()
        if each.kind is not inspect.Parameter.VAR_KEYWORD
    }
    shared = {name for kind in SHARED.get(command, ()) for name in kind.__annotations__}
    outputs = keywords() if command == "convert" else set()
    return named | shared | outputs


@pytest.mark.parametrize("command", CALLS)
def test_each_option_of_a_command_is_a_keyword(command: str) -> None:
    options = options_of(command) - OF_A_TERMINAL
    assert options - keywords_of(command) == NOT_HERE[command]


@pytest.mark.parametrize("command", CALLS)
def test_what_is_no_option_is_what_a_command_takes_without_one(command: str) -> None:
    """Words without an option, and outputs that have no word of the command line."""
    more = {"record": {"command"}, "convert": {"profiles", "outputs"}, "report": {"profiles"},
            "check": {"profile"}, "accuracy": {"profile"}, "diff": {"old", "new"},
            "settle": {"new"}, "carry": {"profile"},
            "measure": {"binaries", "arguments", "input"}}  # fmt: skip
    assert keywords_of(command) - options_of(command) == more[command]


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (("--pid", "17737", "--drop-newest", "2"), {"pid": 17737, "drop_newest": 2}),
        (("--event", "taken-branches:u", "--strict"),
         {"event": "taken-branches:u", "strict": True}),
        (("--probes", "off", "--llvm-format", "extbinary"),
         {"probes": "off", "llvm_format": "extbinary"}),
        (("--correct-runs", "--compat", "llvm-profgen"),
         {"correct_runs": True, "compat": "llvm-profgen"}),
    ],
)  # fmt: skip
def test_what_is_written_is_the_same(command, words, given: dict[str, Any], tmp_path: Path) -> None:
    told, called = tmp_path / "told", tmp_path / "called"
    assert command("convert", RECORDING, "--binary", PIE, "--llvm", told, *words).code == 0
    lbr2pgo.convert(RECORDING, PIE, llvm=called, **given)
    assert told.read_bytes() == called.read_bytes()


def test_samples_of_a_span_of_time_are_those_of_the_command_line(command, tmp_path: Path) -> None:
    times = [int(time) for batch in lbr2pgo.open(RECORDING).batches() for time in batch.time]
    start, end = times[10] / 1e9, times[50] / 1e9
    words = ("--time", f"{start:.9f},{end:.9f}", "--summary-json", tmp_path / "told")
    assert command("convert", RECORDING, "--binary", PIE, *words).code == 0
    waterfall = json.loads((tmp_path / "told").read_text())["waterfall"]
    rows = {row["step"]: row["count"] for row in waterfall}
    done = lbr2pgo.convert(RECORDING, PIE, time=(start, end))
    assert rows["samples_selected"] == done.tallies["samples_selected"] == 41


def test_a_program_is_found_on_path_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(PIE, tmp_path / "interp-of-a-test")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert lbr2pgo.convert(RECORDING, "interp-of-a-test").binary == tmp_path / "interp-of-a-test"


def test_gates_are_those_of_check(command) -> None:
    words = ("--max-bias", "0.01", "--min-density", "1000", "--format", "json")
    told = json.loads(command("check", RECORDING, "--binary", PIE, *words).out)
    checked = lbr2pgo.check(RECORDING, PIE, max_bias=0.01, min_density=1000)
    assert checked.failed == ("density",)
    assert told["passed"] is checked.passed is False
    measures = {row["measure"]: row["value"] for row in checked.measures.records()}
    assert measures == {name: each["value"] for name, each in told["measures"].items()}
    with pytest.raises(lbr2pgo.InputError, match="max_stale: 50 is no share"):
        lbr2pgo.check(RECORDING, PIE, max_stale=50)


def test_accuracy_is_that_of_the_command(command) -> None:
    words = ("--exact", EXACT, "--binary", PIE, "--correct-runs", "--format", "json")
    told = json.loads(command("accuracy", RECORDING, *words).out)
    found = lbr2pgo.accuracy(RECORDING, EXACT, PIE, correct_runs=True)
    kinds = ("edges", "conditional", "blocks")
    assert found.table.column("overlap") == tuple(told[kind]["overlap"] for kind in kinds)
    assert found.functions.column("function") == tuple(each["name"] for each in told["worst"])


def test_an_option_without_effect_is_a_note() -> None:
    done = lbr2pgo.convert(RECORDING, PIE, afdo_version="3")
    assert done.notes[0].startswith("--afdo-version says how to write an output that is not asked")


def test_all_images_are_those_of_the_command_line(command, tmp_path: Path) -> None:
    recorded = next(event.path for event in lbr2pgo.open(RECORDING).space_events()
                    if isinstance(event, Mmap) and event.path.endswith(PIE.name))  # fmt: skip
    sysroot, folders = tmp_path / "root", [tmp_path / "told", tmp_path / "called"]
    program = sysroot / recorded.lstrip("/")
    for folder in (program.parent, *folders):
        folder.mkdir(parents=True)
    shutil.copy(PIE, program)
    told, called = (folder / "{name}.fdata" for folder in folders)
    words = ("--all-images", "--sysroot", sysroot, "--fdata", told)
    assert command("convert", RECORDING, *words).code == 0
    found = lbr2pgo.convert(RECORDING, all_images=True, sysroot=sysroot, fdata=called)
    one, other = ({path.name: path.read_bytes() for path in each.iterdir()} for each in folders)
    assert one == other
    assert program in [image.binary for image in found.images if image.is_complete]
    again = Path(shutil.copy(PIE, tmp_path / "again"))
    named = lbr2pgo.convert(RECORDING, [PIE, again], fdata=called)
    assert repr(named) == f"<Images: converted {PIE.name}, again of 2>"
    with pytest.raises(lbr2pgo.InputError, match="--no-lbr is for one image"):
        lbr2pgo.convert(RECORDING, all_images=True, no_lbr=True)


def test_curves_are_those_of_the_command_line(command) -> None:
    words = (RECORDING, "--exact", EXACT, "--binary", PIE, "--curves", "--format", "json")
    told = json.loads(command("accuracy", *words).out)
    found = lbr2pgo.accuracy(RECORDING, EXACT, PIE, curves=True)
    assert found.curves is not None
    assert found.curves.column("edges") == tuple(each["edges"] for each in told)
    assert lbr2pgo.accuracy(RECORDING, EXACT, PIE).curves is None


def test_a_value_that_is_none_of_its_options_is_named(tmp_path: Path) -> None:
    with pytest.raises(lbr2pgo.InputError, match="llvm_format: there is no xml"):
        lbr2pgo.convert(RECORDING, PIE, llvm=tmp_path / "x", llvm_format="xml")


def test_no_room_takes_a_public_name() -> None:
    """Else what was imported before decides which of both `lbr2pgo.NAME` is."""
    rooms = {path.stem for path in Path(lbr2pgo.__file__).parent.iterdir()}
    assert not rooms & {*lbr2pgo.__all__}


def test_recording_with_the_software_lbr(tmp_path: Path) -> None:
    made = lbr2pgo.record(
        [PIE, "1"], output=tmp_path / "x", exact=tmp_path / "y", period=499, emulate=True,
        keep_binary=True,
    )  # fmt: skip
    (kept,) = made.kept
    assert kept.read_bytes() == PIE.read_bytes()
    assert (made.exit_code, made.is_written) == (0, True)
    assert made.samples == sum(len(batch) for batch in lbr2pgo.open(made).batches())
    assert "Using the software LBR" in made.notes[0]
    assert lbr2pgo.accuracy(made, tmp_path / "y", PIE).edges.overlap > 0.9
    with pytest.raises(TypeError, match="there is no argument perod; did you mean period"):
        lbr2pgo.record([PIE], perod=3)


def test_what_is_carried_is_written_if_it_is_enough(command, tmp_path: Path) -> None:
    old, told, called = (tmp_path / name for name in ("old.prof", "told.prof", "called.prof"))
    old.write_text("f:12:9\n 1: 9\n 2: 3\n")
    for name, text in (("from", "{\n  x();\n  y();\n}\n"), ("to", "{\n\n  x();\n}\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.c").write_text(f"int f(void) {text}")
    trees = {"from_": tmp_path / "from", "to": tmp_path / "to"}
    with pytest.raises(lbr2pgo.OutputError, match=r"75\.0% of .* carried, and min_"):
        lbr2pgo.carry(old, called, **trees, min_carried=0.8)
    assert not called.exists()
    done = lbr2pgo.carry(old, called, **trees, min_carried=0.75)
    assert repr(done) == "<Carried: 75.0% of the counts carried>"
    words = ("--from", trees["from_"], "--to", trees["to"], "-o", told)
    assert command("carry", old, *words).code == 0
    assert called.read_bytes() == told.read_bytes()
    with pytest.raises(lbr2pgo.OutputError, match="written over an input"):
        lbr2pgo.carry(old, old, **trees)


def test_costs_are_those_of_the_programs() -> None:
    found = lbr2pgo.measure([PIE, PIE], ["1"], runs=0)
    rows = list(found.table.records())
    assert [row["program"] for row in rows] == [str(PIE)] * 2
    assert rows[1]["instructions"] == rows[0]["instructions"] > 1000
    assert [row["taken_ratio"] for row in rows] == [1.0, 1.0]
    assert rows[1]["time_ratio"] is None
