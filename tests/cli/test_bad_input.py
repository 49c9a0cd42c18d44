"""Bad input: a clear message (what, where, cure), exit code 2, and no output half written."""

from __future__ import annotations

import gzip
import json
import os
import struct
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from builders import perf_data as build
from builders.perf_data import Event
from builders.recordings import (
    FEATURE_ARCH,
    PIE,
    RECORDING,
    STATIC,
    STATIC_RECORDING,
    TESTBINS,
    recorded,
)
from builders.zstd import zstd

from lbr2pgo.sources.saved_counts import HEADER

LOOP = ((0x22A8DA, 0x22A8C0, 2), (0x22A8DA, 0x22A8C0, 2))
"""Twice around a loop of the static program."""
BUILD_ID = "e75cc8c58b5ba6370d0bc41415fe986ec5ab974e"
"""Of the PIE."""


@pytest.fixture
def refused(command, tmp_path: Path) -> Callable[..., str]:
    """Run convert, which must refuse and leave old outputs and the folder as they were."""

    def run(profile: object, binary: object, *options: object) -> str:
        folder = tmp_path / "outputs"
        folder.mkdir()
        old = {
            name: f"old {name}".encode() for name in ("llvm", "fdata", "preaggregated", "counts")
        }
        for name, content in old.items():
            (folder / name).write_bytes(content)
        wanted = [word for name in old for word in (f"--{name}", folder / name)]
        answer = command("convert", profile, "--binary", binary, *wanted, *options)
        assert answer.code == 2
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == old
        assert answer.err.count("lbr2pgo: error: ") == 1
        message = answer.err.split("lbr2pgo: error: ")[1]
        assert len(message.strip().split("\n")) == 2, "what and where, then the cure"
        return str(message)

    return run


def test_a_missing_profile(refused, tmp_path: Path) -> None:
    path = tmp_path / "missing.data"
    message = refused(path, PIE)
    assert message.startswith(f"{path}: can't be read: No such file or directory\n")
    assert "Check the path" in message


def test_a_missing_binary(refused, tmp_path: Path) -> None:
    message = refused(RECORDING, tmp_path / "missing")
    assert message.startswith(f"{tmp_path / 'missing'}: can't be read: No such file")


def test_a_directory_as_binary(refused, tmp_path: Path) -> None:
    message = refused(RECORDING, tmp_path)
    assert f"{tmp_path}: not an ELF file" in message


def test_a_directory_as_profile(refused, tmp_path: Path) -> None:
    message = refused(tmp_path, PIE)
    assert str(tmp_path) in message
    assert "directory" in message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"It was a dark and stormy night.\n", "is no profile of a known format"),
        (bytes(range(256)) * 20, "is no profile of a known format"),
        (b"main:100:3\n 1: 20\n", "is no profile of a known format"),
    ],
)
def test_a_file_that_is_no_profile(refused, tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    message = refused(path, PIE)
    assert message.startswith(f"{path}: {says}\n")
    for name in ("perf.data", "perf script", "BOLT pre-aggregated", "lbr2pgo counts"):
        assert name in message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (STATIC.read_bytes(), "but an ELF file\nName the program with --binary"),
        (gzip.compress(RECORDING.read_bytes()), "but packed with gzip\nUnpack it first"),
        (b'{"resourceProfiles":[]}\n', "but OpenTelemetry profiles as JSON\nHave the collector"),
        (zstd.compress(RECORDING.read_bytes()), "but packed with zstd\nUnpack it first"),
    ],
)
def test_a_file_that_is_taken_for_a_profile(
    refused, tmp_path: Path, content: bytes, says: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    answer = refused(path, PIE)
    assert f"{path}: is no profile of a known format, {says}" in answer
    assert "Readable" not in answer


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"#!/bin/sh\n", "not an ELF file"),
        (b"", "not an ELF file"),
        (STATIC.read_bytes()[:64], ""),
        (STATIC.read_bytes()[:4000], ""),
        (RECORDING.read_bytes(), "not an ELF file"),
    ],
)
def test_a_binary_that_is_none(refused, tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "binary"
    path.write_bytes(content)
    message = refused(RECORDING, path)
    assert message.startswith(str(path))
    assert says in message


def test_another_build_of_the_binary(refused, tmp_path: Path) -> None:
    other = tmp_path / "interp.pie"
    data = bytearray(PIE.read_bytes())
    at = data.index(bytes.fromhex(BUILD_ID))
    data[at] ^= 0xFF
    other.write_bytes(data)
    message = refused(RECORDING, other)
    assert message.startswith(f"{RECORDING}: {other} is another build than the recorded ")
    assert "build-id 185cc8c5" in message
    assert f"--build-id {BUILD_ID}" in message


def test_another_program(refused) -> None:
    message = refused(RECORDING, TESTBINS / "x86-64" / "shapes.pie")
    assert "no process in this recording mapped" in message
    assert "interp.pie" in message


@pytest.mark.parametrize(
    "options", [(), ("--build-id", "e75cc8c58b5ba6370d0bc41415fe986ec5ab974e")]
)
def test_a_binary_of_another_machine(refused, options: tuple[str, ...]) -> None:
    other = TESTBINS / "aarch64" / "interp.pie"
    message = refused(RECORDING, other, *options)
    assert f"{other} is a program for aarch64, but this was recorded on x86-64" in message


def test_a_machine_without_a_name_is_not_judged(command, tmp_path: Path) -> None:
    for machine, code in (("x86_64", 0), ("loongarch64", 0), ("aarch64", 2)):
        path = tmp_path / machine
        path.write_bytes(recorded([LOOP], features={FEATURE_ARCH: build.string(machine)}))
        assert command("convert", path, "--binary", STATIC).code == code


def test_a_recording_without_branch_stacks(refused, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    event = Event(sample_type=build.IP | build.TID | build.TIME, branch_sample_type=0)
    path.write_bytes(recorded([()] * 5, event=event))
    message = refused(path, STATIC)
    assert "no samples left at the step “with a branch stack”" in message
    assert "perf record -b" in message


def test_a_recording_of_call_stacks_only(refused, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(recorded([LOOP], event=Event(branch_sample_type=1 | 1 << 11)))
    assert "record all branches: perf record -b" in refused(path, STATIC)


def test_samples_of_other_processes_only(refused, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    other = build.Sample(LOOP, pid=99, tid=99).encode(Event())
    path.write_bytes(recorded([], extra=other))
    message = refused(path, STATIC)
    assert "did not map the image" in message


@pytest.mark.parametrize("size", [1, 7, 8, 20, 103, 104, 200, 600])
def test_a_recording_cut_off_before_its_first_sample(refused, tmp_path: Path, size: int) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(RECORDING.read_bytes()[:size])
    refused(path, PIE)


def test_a_recording_cut_off_says_so_even_if_nothing_is_left(command, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(RECORDING.read_bytes()[:1000])
    answer = command("convert", path, "--binary", PIE)
    assert answer.code == 2
    assert "truncated: bytes that the header promises and the file lacks" in answer.err


def test_a_recording_cut_off_in_the_middle_is_used_as_far_as_it_goes(
    command, tmp_path: Path
) -> None:
    path, output = tmp_path / "perf.data", tmp_path / "out"
    path.write_bytes(RECORDING.read_bytes()[:60_000])
    answer = command("convert", path, "--binary", PIE, "--fdata", output)
    assert answer.code == 0
    assert f"warning: {path}: " in answer.err
    assert "truncated" in answer.err
    assert 0 < int(answer.out.split("samples read")[1].split()[0]) < 128
    assert output.stat().st_size


def test_unknown_records_are_passed_over_and_counted(command, tmp_path: Path) -> None:
    path, plain = tmp_path / "perf.data", tmp_path / "plain"
    unknown = build.record(4242, 0, bytes(24)) * 3
    path.write_bytes(recorded([LOOP] * 4, extra=unknown))
    plain.write_bytes(recorded([LOOP] * 4))
    answer, expected = (command("convert", each, "--binary", STATIC) for each in (path, plain))
    assert answer.code == expected.code == 0
    assert answer.out == expected.out
    assert "records of unknown types: 3" in answer.err
    assert "records of unknown types" not in expected.err


def test_a_big_endian_recording(refused, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(b"2ELIFREP" + bytes(200))
    assert str(path) in refused(path, STATIC)


# ---------------------------------------------------------------------------- binaries that lack


@pytest.fixture
def stripped(tmp_path: Path, tool, run) -> Callable[[str], Path]:
    """A copy of the PIE without what an option of strip takes away."""

    def strip(option: str) -> Path:
        target = tmp_path / f"interp{option}"
        run(tool("llvm-strip-22"), option, PIE, "-o", target)
        return target

    return strip


def test_without_dwarf_fdata_is_written_and_the_sample_profile_refused(
    command, stripped, tmp_path: Path
) -> None:
    binary = stripped("--strip-debug")
    whole, fdata, profile = (tmp_path / name for name in ("whole", "fdata", "profile"))
    assert command("convert", RECORDING, "--binary", PIE, "--fdata", whole).code == 0
    answer = command("convert", RECORDING, "--binary", binary, "--fdata", fdata, "--llvm", profile)
    assert answer.code == 2
    assert f"no sample profile was written: {binary} has no debug information" in answer.err
    assert "build it with -g1 or -g" in answer.err
    assert fdata.read_bytes() == whole.read_bytes()
    assert not profile.exists()
    assert "written to fdata" in answer.out
    assert command("convert", RECORDING, "--binary", binary, "--fdata", fdata).code == 0


def test_a_stripped_binary_says_what_it_lacks(command, stripped, tmp_path: Path) -> None:
    binary = stripped("--strip-all")
    answer = command("convert", RECORDING, "--binary", binary)
    assert answer.code == 0
    assert "in code that no symbol names" in answer.out
    assert "give a binary with a symbol table (not stripped)" in answer.out
    refused = command("convert", RECORDING, "--binary", binary, "--llvm", tmp_path / "profile")
    assert refused.code == 2
    assert not (tmp_path / "profile").exists()


def test_an_output_that_would_be_empty_leaves_the_others(command, tmp_path: Path) -> None:
    """Traces of the start-up code, which has symbols but no debug information."""
    traces = tmp_path / "traces"
    traces.write_text("F 22a5c0 22a5c0 7\n")
    profile, counts = tmp_path / "profile", tmp_path / "counts"
    words = ("convert", traces, "--binary", STATIC, "--llvm", profile, "--counts", counts)
    answer = command(*words)
    assert answer.code == 2
    assert "the profile would be empty" in answer.err
    assert "build with -g" in answer.err
    assert not profile.exists()
    assert counts.stat().st_size


# ---------------------------------------------------------------------------- outputs


@pytest.mark.parametrize("option", ["--llvm", "--fdata", "--preaggregated", "--counts"])
@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("missing/out", "No such file or directory"),
        ("file/out", "Not a directory"),
        ("folder", "Is a directory"),
        ("/dev/full", "No space left on device"),
        ("x" * 300, "File name too long"),
    ],
)
def test_an_output_path_that_cannot_be_written(
    command, tmp_path: Path, option: str, place: str, says: str
) -> None:
    (tmp_path / "file").write_text("a file")
    (tmp_path / "folder").mkdir()
    output = tmp_path / place
    answer = command("convert", RECORDING, "--binary", PIE, option, output)
    assert answer.code == 2
    assert f"lbr2pgo: error: {output}: can't be written: {says}\n" in answer.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "a file"


def test_other_outputs_are_written_all_the_same(command, tmp_path: Path) -> None:
    good, bad = tmp_path / "good", "/dev/full"
    answer = command("convert", RECORDING, "--binary", PIE, "--fdata", bad, "--llvm", good)
    assert answer.code == 2
    assert bad in answer.err
    assert f"note: {good} was written all the same" in answer.err
    assert good.read_bytes().startswith(b"run:")
    assert "written to the sample profile" in answer.out


@pytest.mark.parametrize("place", ["missing/out", "folder", "file/out", "/proc/out"])
@pytest.mark.parametrize("words", [("convert", "--llvm"), ("report", "--html")])
def test_outputs_are_checked_before_anything_is_read(
    command, tmp_path: Path, place: str, words: tuple[str, str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    name, option = words
    answer = command(name, tmp_path / "no recording", "--binary", PIE, option, tmp_path / place)
    assert answer.code == 2
    assert f"{tmp_path / place}: can't be written" in answer.err
    assert {path.name for path in tmp_path.iterdir()} == {"folder", "file"}


def test_a_summary_that_cannot_be_written(command, tmp_path: Path) -> None:
    path = tmp_path / "missing" / "summary"
    answer = command("convert", RECORDING, "--binary", PIE, "--summary-json", path)
    assert answer.code == 2
    assert f"{path}: can't be written" in answer.err


def test_no_output_replaces_an_input_or_another_output(command, tmp_path: Path) -> None:
    recording, binary = tmp_path / "perf.data", tmp_path / "interp.pie"
    recording.write_bytes(RECORDING.read_bytes())
    binary.write_bytes(PIE.read_bytes())
    (tmp_path / "link").symlink_to(recording)
    both, elsewhere = tmp_path / "both", tmp_path / "elsewhere"
    words = ("convert", recording, "--binary", binary, "--fdata", elsewhere, "--llvm", both)
    for option, place in (
        ("--llvm", recording), ("--llvm", binary), ("--counts", tmp_path / "link"),
        ("--counts", both), ("--preaggregated", tmp_path / "." / "both"),
        ("--summary-json", both), ("--summary-json", recording),
    ):  # fmt: skip
        answer = command(*words, option, place)
        assert answer.code == 2
        assert "Give every output a path of its own." in answer.err
    assert recording.read_bytes() == RECORDING.read_bytes()
    assert not elsewhere.exists()
    nowhere = ("--llvm", "/dev/null", "--fdata", "/dev/null")
    assert command("convert", recording, "--binary", binary, *nowhere).code == 0


# ---------------------------------------------------------------------------- cut off


@pytest.mark.parametrize("part", range(12))
@pytest.mark.parametrize("name", ["preaggregated", "counts", "script"])
def test_any_part_of_a_file_is_used_or_refused(
    command, tmp_path: Path, name: str, part: int
) -> None:
    whole = tmp_path / name
    if name == "script":
        line = "prog 10 5.1: 0x22a8da/0x22a8c0/P/-/-/3  0x22a8da/0x22a8c0/M/-/-/0 \n"
        whole.write_text(line * 5)
    else:
        words = ("convert", STATIC_RECORDING, "--binary", STATIC, f"--{name}", whole)
        assert command(*words).code == 0
    data = whole.read_bytes()
    path, output = tmp_path / "part", tmp_path / "out"
    path.write_bytes(data[: len(data) * part // 12])
    answer = command("convert", path, "--binary", STATIC, "--fdata", output)
    assert answer.code in (0, 2)
    assert output.exists() == (answer.code == 0)


# ---------------------------------------------------------------------------- hostile files


def saved_counts(tmp_path: Path, header: object, rows: int = 1) -> Path:
    """A file of saved counts with any header."""
    path = tmp_path / "counts"
    columns = dict.fromkeys(("from_", "to", "end", "count", "mispredicted"), np.uint64)
    with zipfile.ZipFile(path, "w") as archive:
        raw = np.frombuffer(json.dumps(header).encode(), np.uint8)
        arrays = {HEADER: raw, "known": np.full(rows, 6, np.uint8)}
        arrays |= {name: np.full(rows, 0x22A8C0, dtype) for name, dtype in columns.items()}
        for name, array in arrays.items():
            stream = BytesIO()
            np.lib.format.write_array(stream, array, version=(1, 0))
            archive.writestr(f"{name}.npy", stream.getvalue())
    return path


@pytest.mark.parametrize(
    "tallies",
    [
        {"samples_read": 5, "samples_selected": 7},
        {"samples_read": 5, "samples_selected": 4, "samples_selected/no_such_reason": 1},
        {"no_such_step": 5, "no_such_step/at_all": 1, "\x1b[31m": 3},
        {"runs_valid": 3},
    ],
)
def test_saved_counts_with_odd_tallies(command, tmp_path: Path, tallies: dict[str, int]) -> None:
    path = saved_counts(tmp_path, {"version": 1, "build_id": None, "tallies": tallies})
    answer = command("convert", path, "--binary", STATIC)
    assert answer.code == 2
    assert "the saved counts are damaged: its tallies do not add up" in answer.err
    sound = saved_counts(tmp_path, {"version": 1, "build_id": None, "tallies": {}})
    assert command("convert", sound, "--binary", STATIC).code == 0


def test_names_cannot_steer_the_terminal(command, tmp_path: Path) -> None:
    """Not those of files, and not those in files."""
    evil = tmp_path / "\x1b[2J\nlbr2pgo: error: forged\u202e"
    answer = command("convert", evil, "--binary", PIE)
    assert answer.code == 2
    assert r"\x1b[2J\nlbr2pgo: error: forged\u202e: can't be read" in answer.err
    assert answer.err.count("\n") == 2
    recording = tmp_path / "perf.data"
    recording.write_bytes(recorded([LOOP], path="/x/\x1b[31m\ninterp"))
    answer = command("convert", recording, "--binary", STATIC)
    assert answer.code == 2
    assert r"/x/\x1b[31m\ninterp" in answer.err


def test_names_of_any_bytes(command, tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9 \xff")
    os.mkdir(folder)
    recording, output = Path(folder, "perf.data"), Path(folder, "out \udcfe")
    recording.write_bytes(STATIC_RECORDING.read_bytes())
    words = ("convert", recording, "--binary", STATIC, "--fdata")
    assert command(*words, output).code == 0
    assert os.fsencode(output.name) in os.listdir(os.fsencode(folder))
    answer = command(*words, Path(folder, "missing", "out"))
    assert answer.code == 2
    assert "can't be written" in answer.err


@pytest.mark.parametrize("seed", range(20))
def test_damage_anywhere_is_answered_and_never_crashes(command, tmp_path: Path, seed: int) -> None:
    """Random bytes of a recording are overwritten; what is left is used, or refused in words."""
    random = np.random.default_rng(seed)
    data = np.frombuffer(RECORDING.read_bytes(), np.uint8).copy()
    for _ in range(40):
        at = int(random.integers(0, len(data) if seed % 2 else 4000))
        data[at : at + int(random.integers(1, 9))] = random.integers(0, 256)
    path = tmp_path / "perf.data"
    path.write_bytes(data.tobytes())
    answer = command("convert", path, "--binary", PIE, "--fdata", tmp_path / "out")
    assert answer.code in (0, 2), answer.err
    assert (tmp_path / "out").exists() == (answer.code == 0)


@pytest.mark.parametrize("value", [0, 0xFFFF, 7])
def test_a_record_whose_size_lies(command, tmp_path: Path, value: int) -> None:
    lying = struct.pack("<IHH", 9, 2, value) + bytes(40)
    path = tmp_path / "perf.data"
    path.write_bytes(recorded([LOOP], extra=lying))
    assert command("convert", path, "--binary", STATIC).code in (0, 2)
