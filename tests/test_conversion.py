"""`convert` as a library call."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.outputs import every_form, outputs
from builders.recordings import PIE, RECORDING, STATIC, STATIC_RECORDING, recorded

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.counting.chosen_samples import CountingOptions, SampleChoice
from lbr2pgo.model import waterfall
from lbr2pgo.model.incomplete import EmptyProfileError, IncompleteError
from lbr2pgo.profiles.bolt.fdata import derive_fdata as bolt
from lbr2pgo.profiles.bolt.fdata.format import SAMPLES
from lbr2pgo.profiles.llvm import text_table
from lbr2pgo.profiles.llvm.context_forms import STEPS as CONTEXTS
from lbr2pgo.profiles.registry import formats, steps
from lbr2pgo.profiles.unsymbolized.format import CONTEXT_RUNS
from lbr2pgo.sources.text_lines import CHUNK_SIZE
from lbr2pgo.support.errors import InputError, OutputError
from lbr2pgo.support.threads import at_most
from lbr2pgo.support.timings import Timings

FULL = Path("/dev/full")

LOOP = ((0x22A8DA, 0x22A8C0, 2), (0x22A8DA, 0x22A8C0, 2))


def test_what_was_done_is_told(tmp_path: Path) -> None:
    fdata, llvm = tmp_path / "fdata", tmp_path / "llvm"
    done = convert(ConvertOptions((RECORDING,), PIE, outputs=outputs(fdata=fdata, llvm=llvm)))
    assert set(done.written) == {fdata, llvm}
    assert done.tallies["samples_read"] == 128
    assert done.flow.counts is done.counts
    waterfall.check(done.tallies)
    (note,) = done.notes
    assert note.startswith(f"{llvm}: 8.6 samples for each location")


def test_every_sample_branch_and_run_is_accounted_for(tmp_path: Path) -> None:
    asked = every_form(tmp_path)
    done = convert(ConvertOptions((STATIC_RECORDING,), STATIC, outputs=asked))
    # No sample has a call stack to be unwound, and nothing was asked to be inferred or weighed.
    steps_not_taken = (*CONTEXTS, CONTEXT_RUNS, *waterfall.INFERENCE_STEPS, *SAMPLES)
    not_taken = {step.key for step in steps_not_taken}
    not_taken |= {"samples_weighed", "entries_read", "entries_in_image"}
    kinds = tuple(map(type, asked))
    written = (step for form in formats() if form.output in kinds for step in form.steps)
    for step in (*waterfall.STEPS, *written):
        assert (step.key in done.tallies) == (step.key not in not_taken), step.key
    waterfall.check(done.tallies, steps())


def test_progress_counts_every_sample_once() -> None:
    seen: list[tuple[int, float | None]] = []
    convert(ConvertOptions((RECORDING, RECORDING), PIE), lambda *told: seen.append(told))
    assert sum(samples for samples, _ in seen) == 2 * 128


def test_progress_tells_how_much_of_all_inputs_was_read(tmp_path: Path) -> None:
    """It begins anew with each stage: text is gone over when it is opened, too."""
    told: dict[str, list[float | None]] = {}
    stages: list[str] = []
    text = tmp_path / "script.txt"
    stack = " ".join(["0x401139/0x401140/P/-/-/0"] * 32)
    text.write_text(f"42 401139 {stack}\n" * 9000)
    assert text.stat().st_size > 2 * CHUNK_SIZE
    inputs = (text, STATIC_RECORDING)
    convert(
        ConvertOptions(inputs, STATIC),
        lambda _, share: told.setdefault(stages[-1], []).append(share),
        Timings(lambda name, _: stages.append(name)),
    )
    opening, seen = told.values()
    assert opening == sorted(opening)
    text_share = text.stat().st_size / sum(path.stat().st_size for path in inputs)
    assert len(seen) >= 4
    assert seen == sorted(seen)
    assert seen[-2] == pytest.approx(text_share, abs=0.3)
    assert seen[-1] == pytest.approx(1)


def test_timings_name_the_stages_and_the_bytes(tmp_path: Path) -> None:
    timings = Timings()
    options = ConvertOptions((RECORDING,), PIE, outputs=outputs(fdata=tmp_path / "x"))
    convert(options, timings=timings)
    assert list(timings.seconds)[:3] == ["open the inputs", "read and count", "replay"]
    assert "write fdata" in timings.seconds
    assert timings.bytes["read and count"] == RECORDING.stat().st_size


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        ({"llvm": RECORDING}, "would be written over an input"),
        ({"llvm": PIE}, "would be written over an input"),
        ({"llvm": Path("x"), "fdata": Path("./x")}, "another output"),
        ({"llvm": Path("-"), "fdata": Path("-")}, "mixed on standard output"),
    ],
)
def test_senseless_paths(paths: dict[str, Path], says: str) -> None:
    with pytest.raises(OutputError, match=says):
        ConvertOptions((RECORDING,), PIE, outputs=outputs(**paths))


def test_an_empty_profile_is_an_error_with_its_waterfall(tmp_path: Path) -> None:
    options = ConvertOptions(
        (RECORDING,),
        PIE,
        outputs=outputs(fdata=tmp_path / "x"),
        counting=CountingOptions(choice=SampleChoice(pids=(1,))),
    )
    with pytest.raises(EmptyProfileError, match="chosen by event and process") as raised:
        convert(options)
    assert raised.value.tallies["samples_selected/other_process"] == 128
    assert list(tmp_path.iterdir()) == []


def test_no_fall_through_is_valid(tmp_path: Path) -> None:
    """The branches are written to fdata all the same; the sample profile would be empty."""
    path, fdata, llvm = (tmp_path / name for name in ("traces", "fdata", "llvm"))
    path.write_text("B 22a8da 22a8c0 7 1\nF 22a8c1 22a8c2 4\n")
    with pytest.raises(EmptyProfileError) as raised:
        convert(ConvertOptions((path,), STATIC, outputs=outputs(fdata=fdata, llvm=llvm)))
    assert raised.value.tallies["runs_valid/not_an_instruction"] == 4
    assert fdata.read_text() == "1 main 1ea 1 main 1d0 1 7\n"
    assert not llvm.exists()


def test_an_output_that_fails_is_told_after_the_others_are_written(tmp_path: Path) -> None:
    good = tmp_path / "good"
    with pytest.raises(IncompleteError, match="can't be written") as raised:
        convert(ConvertOptions((RECORDING,), PIE, outputs=outputs(counts=FULL, fdata=good)))
    assert raised.value.where == str(FULL)
    assert raised.value.tallies["fdata_runs"] > 0
    assert f"{good} was written all the same" in raised.value.notes
    assert good.exists()


def test_every_output_that_fails_is_told() -> None:
    with pytest.raises(IncompleteError) as raised:
        convert(ConvertOptions((RECORDING,), PIE, outputs=outputs(counts=FULL, fdata=FULL)))
    assert raised.value.where == str(FULL)
    assert any(str(FULL) in note for note in raised.value.notes)


def test_paths_that_cannot_be_written_are_found_before_the_work(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "missing" / "bad"
    read: list[int] = []
    options = ConvertOptions((RECORDING,), PIE, outputs=outputs(fdata=good, counts=bad))
    with pytest.raises(OutputError, match="can't be written: No such file") as raised:
        convert(options, read.append)
    assert raised.value.where == str(bad)
    assert (read, list(tmp_path.iterdir())) == ([], [])


def test_fdata_is_the_same_beside_a_sample_profile_and_alone(tmp_path: Path) -> None:
    beside, alone = tmp_path / "beside", tmp_path / "alone"
    timings = Timings()
    options = ConvertOptions(
        (RECORDING,), PIE, outputs=outputs(fdata=beside, llvm=tmp_path / "llvm")
    )
    both = convert(options, timings=timings)
    one = convert(ConvertOptions((RECORDING,), PIE, outputs=outputs(fdata=alone)))
    assert beside.read_bytes() == alone.read_bytes()
    assert {key: both.tallies[key] for key in one.tallies} == dict(one.tallies)


def test_what_keeps_fdata_from_being_made_is_told_beside_a_sample_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise InputError("no such luck")

    monkeypatch.setattr(bolt, "fdata_from_counts", fail)
    llvm = tmp_path / "llvm"
    with pytest.raises(IncompleteError, match="no such luck"):
        convert(
            ConvertOptions((RECORDING,), PIE, outputs=outputs(fdata=tmp_path / "fdata", llvm=llvm))
        )
    assert llvm.exists()


@pytest.mark.parametrize(("threads", "goes_into_a_pipe"), [(2, False), (2, True), (1, False)])
def test_a_sample_profile_is_written_while_fdata_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, goes_into_a_pipe: bool
) -> None:
    """But what may wait for a reader is not: Ctrl-C reaches the main thread alone."""
    done: list[tuple[str, bool]] = []

    def noting(what: str, does: Callable[..., Any]) -> Callable[..., Any]:
        def note(*given: Any, **options: Any) -> Any:
            done.append((what, threading.current_thread() is threading.main_thread()))
            return does(*given, **options)

        return note

    monkeypatch.setattr(text_table, "write", noting("write", text_table.write))
    monkeypatch.setattr(bolt, "fdata_from_counts", noting("make", bolt.fdata_from_counts))
    llvm, read = tmp_path / "llvm", tmp_path / "read"
    if goes_into_a_pipe:
        os.mkfifo(llvm)
    chosen = outputs(llvm=llvm, fdata=tmp_path / "fdata")
    reader = ["sh", "-c", f"cat {llvm} > {read}"] if goes_into_a_pipe else ["true"]
    with subprocess.Popen(reader), at_most(threads):
        convert(ConvertOptions((RECORDING,), PIE, outputs=chosen))
    assert dict(done) == {"write": threads == 1 or goes_into_a_pipe, "make": True}
    if threads == 1:
        assert [what for what, _ in done] == ["write", "make"]


def test_fdata_goes_into_a_pipe(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", tmp_path / "read"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", f"cat {pipe} > {read}"]):
        convert(
            ConvertOptions((RECORDING,), PIE, outputs=outputs(fdata=pipe, llvm=tmp_path / "llvm"))
        )
    convert(ConvertOptions((RECORDING,), PIE, outputs=outputs(fdata=tmp_path / "fdata")))
    assert read.read_bytes() == (tmp_path / "fdata").read_bytes()


def test_order_of_samples_and_division_into_files_change_nothing(tmp_path: Path) -> None:
    stacks = [((0x22A8DA + 0, 0x22A8C0, 2 - i % 2), (0x22A8DA, 0x22A8C0, 2)) for i in range(40)]
    stacks += [((0x22A87D + i % 3, 0x22A8C0, 2),) for i in range(30)]
    whole, mixed = tmp_path / "whole", tmp_path / "mixed"
    whole.write_bytes(recorded(stacks))
    order = np.random.default_rng(5).permutation(len(stacks)).tolist()
    mixed.write_bytes(recorded([stacks[i] for i in order]))
    parts = []
    for i in range(3):
        parts.append(tmp_path / f"part{i}")
        parts[-1].write_bytes(recorded(stacks[i::3]))
    rows = [
        list(convert(ConvertOptions(profiles, STATIC)).counts.rows())
        for profiles in ((whole,), (mixed,), tuple(parts), tuple(reversed(parts)))
    ]
    assert rows[0] == rows[1] == rows[2] == rows[3]
    assert rows[0]


def test_several_conversions_at_once(tmp_path: Path) -> None:
    """No state is shared: two threads, two programs, the same bytes as one after the other."""
    jobs = {"a": (RECORDING, PIE), "b": (STATIC_RECORDING, STATIC)}

    def job(name: str, suffix: str) -> Callable[[], None]:
        recording, binary = jobs[name]
        output = tmp_path / (name + suffix)
        return lambda: void(
            convert(ConvertOptions((recording,), binary, outputs=outputs(fdata=output)))
        )

    for name in jobs:
        job(name, ".alone")()
    threads = [threading.Thread(target=job(name, ".together")) for name in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in jobs:
        alone, together = (tmp_path / (name + s) for s in (".alone", ".together"))
        assert alone.read_bytes() == together.read_bytes()


def void(_: object) -> None:
    """Nothing."""
