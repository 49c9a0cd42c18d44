"""Programs found in real recordings that do not show by name, or not at all, where they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from builders.recordings import TESTBINS

from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.replay.replayed import Replayed
from lbr2pgo.support.errors import InputError

Tool = Callable[[str], str]
Run = Callable[..., object]
PROGRAMS = ("x86-64/interp.pie", "x86-64/shapes.pie", "x86-64/interp.static", "aarch64/shapes.pie")
PIES = tuple(name for name in PROGRAMS if name.endswith(".pie"))


def recording_of(name: str) -> Path:
    return TESTBINS / "recordings" / f"{name.replace('/', '-')}.perf.data"


def as_text(where: Path, name: str, tool: Tool, run: Run, *options: str) -> Path:
    text = where / "script.txt"
    command = (tool("perf"), "script", "-i", recording_of(name), "-F", "ip,brstack", *options)
    text.write_text(run(*command).stdout)  # type: ignore[attr-defined]
    return text


def replayed(profile: Path, binary: Path) -> Replayed:
    return read_and_replay(Inputs(profiles=(profile,), binary=binary))


def same(one: Replayed, other: Replayed) -> bool:
    return list(one.counts.rows()) == list(other.counts.rows())


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_without_mappings_counts_as_the_recording_does(
    name: str, tmp_path: Path, tool: Tool, run: Run
) -> None:
    found = replayed(as_text(tmp_path, name, tool, run), TESTBINS / name)
    assert same(found, replayed(recording_of(name), TESTBINS / name))
    (note,) = [note for note in found.notes if "no mappings recorded" in note]
    assert name not in PIES or "above its own addresses, as its branches tell: " in note
    assert name not in PIES or "branches there are its own" in note


def test_where_branches_do_not_tell_the_error_says_how_to_print_mappings(
    tmp_path: Path, tool: Tool, run: Run
) -> None:
    text = as_text(tmp_path, "x86-64/interp.pie", tool, run)
    with pytest.raises(InputError, match="do not tell where") as error:
        replayed(text, TESTBINS / "x86-64/shapes.pie")
    assert "--show-mmap-events" in str(error.value.cure)


def renamed(where: Path, name: str, run: Run, tool: Tool) -> Path:
    binary = where / "other.name"
    run(tool("objcopy"), "--remove-section=.note.gnu.build-id", TESTBINS / name, binary)
    return binary


@pytest.mark.parametrize("name", ["x86-64/interp.pie", "x86-64/shapes.pie", "x86-64/interp.static"])
@pytest.mark.parametrize("as_what", ["perf.data", "text"])
def test_a_renamed_binary_without_build_id_is_found_by_its_segments_and_branches(
    name: str, as_what: str, tmp_path: Path, tool: Tool, run: Run
) -> None:
    profile = recording_of(name)
    if as_what == "text":
        profile = as_text(tmp_path, name, tool, run, "--show-mmap-events")
    found = replayed(profile, renamed(tmp_path, name, run, tool))
    assert same(found, replayed(recording_of(name), TESTBINS / name))
    (note,) = [note for note in found.notes if "by segments" in note]
    assert f"{name} (" in note
    assert "branches there are its own" in note


@pytest.mark.parametrize(
    ("recorded", "given"),
    [("x86-64/interp.pie", "x86-64/shapes.pie"), ("x86-64/shapes.static", "x86-64/interp.static")],
)
def test_another_program_is_not_taken_for_the_recorded_one(
    recorded: str, given: str, tmp_path: Path, tool: Tool, run: Run
) -> None:
    with pytest.raises(InputError, match="no process in this recording mapped"):
        replayed(recording_of(recorded), renamed(tmp_path, given, run, tool))
