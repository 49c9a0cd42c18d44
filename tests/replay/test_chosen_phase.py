"""A phase is chosen by its number, and is what `--time` with its span is."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from builders import perf_data as build
from builders.fixtures import Tool
from builders.perf_data import BRANCH_STACK, IP, TID, Event
from builders.perf_data import Sample as Written
from builders.phases import Phased, phased
from builders.recordings import PIE, RECORDING, STATIC, STATIC_ENTRY

import lbr2pgo
from lbr2pgo.cli import main
from lbr2pgo.counting.chosen_samples import CountingOptions, SampleChoice
from lbr2pgo.evidence.second_look import SecondLook
from lbr2pgo.evidence.time_line import TIME_LINE
from lbr2pgo.replay.processes import ProcessInputs, read_process
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.sources.saved_counts import read_counts
from lbr2pgo.support.errors import InputError


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> Phased:
    return phased(tmp_path_factory.mktemp("phases"), tool, 200, 600)


def spans(recorded: Phased) -> list[str]:
    """What `--time` takes, of each phase."""
    table = lbr2pgo.report(recorded.recording, recorded.program, only="phases").table("phases")
    return [str(time) for time in table.column("time")]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("more", [(), ("--no-lbr", "--force"), ("--drop-newest", "2")])
def test_profiles_of_a_phase_are_those_of_its_time(
    recorded: Phased, number: int, more: tuple[str, ...], tmp_path: Path
) -> None:
    made = []
    for choice in (("--phase", str(number)), ("--time", spans(recorded)[number - 1])):
        paths = [tmp_path / f"{choice[0]}.{kind}" for kind in ("prof", "fdata")]
        command = ["convert", recorded.recording, "--binary", recorded.program, *choice, *more]
        outputs = ["--llvm", paths[0], "--fdata", paths[1]]
        assert main([str(word) for word in (*command, *outputs)]) == 0
        made.append([path.read_bytes() for path in paths])
    assert made[0] == made[1]


def test_all_images_have_the_phases_of_the_program(recorded: Phased, tmp_path: Path) -> None:
    texts = []
    for choice in (("--phase", "2"), ("--time", spans(recorded)[1])):
        out = tmp_path / choice[0] / "{name}.fdata"
        out.parent.mkdir()
        words = ["convert", str(recorded.recording), "--all-images", *choice, "--fdata", str(out)]
        assert main(words) == 0
        texts.append((out.parent / "phases.fdata").read_text())
    assert texts[0] == texts[1]


def test_samples_of_all_phases_are_all_samples(recorded: Phased) -> None:
    inputs = Inputs((recorded.recording,), recorded.program)

    def total(phase: int | None) -> int:
        counting = CountingOptions(choice=SampleChoice(phase=phase))
        found = read_and_replay(replace(inputs, counting=counting))
        return found.flow.tallies["samples_mapped"]

    assert total(1) + total(2) == total(None)


def test_merge_takes_the_phase_of_each_recording(recorded: Phased, tmp_path: Path) -> None:
    once, twice = tmp_path / "once.npz", tmp_path / "twice.npz"
    other = tmp_path / "other.data"
    other.write_bytes(recorded.recording.read_bytes())
    words = ["--phase", "1", "--binary", str(recorded.program)]
    assert main(["merge", "-o", str(once), str(recorded.recording), *words]) == 0
    assert main(["merge", "-o", str(twice), str(recorded.recording), str(other), *words]) == 0
    one, two = (read_counts(path) for path in (once, twice))
    assert (2 * one.count).tolist() == two.count.tolist()


def test_libraries_beside_the_program_change_no_phase(recorded: Phased) -> None:
    def activity(inputs: Inputs) -> list[list[int]]:
        read = read_process if isinstance(inputs, ProcessInputs) else read_and_replay
        found = read(inputs, asks=lambda found: SecondLook(found, [TIME_LINE]))
        return found.told[TIME_LINE].samples.tolist()

    paths = (recorded.recording,), recorded.program
    assert activity(ProcessInputs(*paths)) == activity(Inputs(*paths))


@pytest.mark.parametrize("number", [0, 3])
def test_a_phase_that_is_not_there_is_refused(recorded: Phased, number: int) -> None:
    with pytest.raises(InputError, match=f"no phase {number}: it has 2 phases"):
        lbr2pgo.convert(recorded.recording, recorded.program, phase=number)


def test_several_recordings_have_no_phases_together() -> None:
    with pytest.raises(InputError, match="there are 2"):
        lbr2pgo.convert([RECORDING, RECORDING], PIE, phase=1)


def test_counts_have_no_phases(tmp_path: Path) -> None:
    path = tmp_path / "counts.npz"
    assert main(["convert", str(RECORDING), "--binary", str(PIE), "--counts", str(path)]) == 0
    with pytest.raises(InputError, match="no samples"):
        lbr2pgo.convert(path, PIE, phase=1)


def test_a_recording_without_times_has_no_phases_and_no_time(tmp_path: Path) -> None:
    path, event = tmp_path / "perf.data", Event(IP | TID | BRANCH_STACK)
    path.write_bytes(build.file_form([event], Written((STATIC_ENTRY,)).encode(event)))
    for choice in ({"phase": 1}, {"time": (0, 1)}):
        with pytest.raises(InputError, match="when its samples were taken"):
            lbr2pgo.convert(path, STATIC, **choice)


def test_printed_without_times_it_has_none_either(
    recorded: Phased, tool: Tool, tmp_path: Path
) -> None:
    text = tmp_path / "perf.txt"
    fields = "pid,ip,brstack"
    command = [tool("perf"), "script", "-i", recorded.recording, "--show-mmap-events", "-F", fields]
    text.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
    with pytest.raises(InputError, match="when its samples were taken"):
        lbr2pgo.convert(text, recorded.program, phase=1)
    table = lbr2pgo.report(text, recorded.program, only="phases").table("phases")
    assert not table.rows
    assert table.notes == ("The recording does not say when its samples were taken.",)
