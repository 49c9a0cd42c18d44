"""No combination of outputs reads a recording more than twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import pytest
from builders.binary_walks import BinaryWalk, HybridPlan
from builders.c_programs import CProgram
from builders.recordings import STATIC, STATIC_ENTRY, recorded

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.counting.count import CountingOptions
from lbr2pgo.evidence.entries import ENTRIES
from lbr2pgo.evidence.first_times import FIRST_TIMES
from lbr2pgo.evidence.second_look import look_again
from lbr2pgo.model.incomplete import IncompleteError
from lbr2pgo.profiles.base import Output
from lbr2pgo.profiles.llvm.context_forms import findings
from lbr2pgo.profiles.registry import formats, output
from lbr2pgo.profiles.work import Work
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.sources.perf_data.reader import PerfData
from lbr2pgo.sources.perf_script.reader import PerfScript
from lbr2pgo.support.timings import Timings

ASKS_AGAIN = {"sample_text", "extbinary", "unsymbolized_contexts", "afdo_3"}


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> tuple[Path, Path]:
    """A recording with call stacks, and its program."""
    binary = tmp_path_factory.mktemp("walk") / "p"
    CProgram(1).compile(binary, compiler=tool("clang-22"))
    recording = binary.with_suffix(".perfscript")
    steps = BinaryWalk(binary, 1)
    recording.write_text(steps.hybrid_script(steps.hybrid(500, HybridPlan())))
    return recording, binary


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were read to their end."""
    found: list[str] = []
    for reader in (PerfScript, PerfData):

        def batches(
            self: PerfScript | PerfData, *args: object, real: Callable[..., Iterator[object]]
        ) -> Iterator[object]:
            yield from real(self, *args)
            found.append(self.info.path)

        real = reader.batches
        counted = lambda self, *args, real=real: batches(self, *args, real=real)  # noqa: E731
        monkeypatch.setattr(reader, "batches", counted)
    return found


def outputs(where: Path) -> dict[str, Output]:
    forms = [(each.name, form) for each in formats() for form in each.forms]
    found = {form.key: output(name, where / form.key, **form.options) for name, form in forms}
    contexts = output("unsymbolized", where / "contexts", contexts="lines")
    return {**found, "unsymbolized_contexts": contexts}


def test_no_combination_of_outputs_takes_more_than_two(
    walk: tuple[Path, Path], readings: list[str], tmp_path: Path
) -> None:
    recording, binary = walk
    every = outputs(tmp_path)
    sets = [{key} for key in every] + [set(pair) for pair in combinations(sorted(ASKS_AGAIN), 2)]
    for keys in (*sets, set(every)):
        for corrects_bias in (False, True):
            readings.clear()
            made = tuple(every[key] for key in sorted(keys))
            counting = CountingOptions(corrects_bias=corrects_bias)
            with suppress(IncompleteError):  # some want what the program lacks
                convert(ConvertOptions((recording,), binary, outputs=made, counting=counting))
            assert len(readings) == (2 if keys & ASKS_AGAIN else 1), keys


def test_a_bias_is_found_once(readings: list[str], tmp_path: Path) -> None:
    """What was counted with a bias is counted anew, and seen again as it was counted then."""
    other = (0x22A8B8, 0x22A8C0, 2)
    recording = tmp_path / "perf.data"
    recording.write_bytes(recorded([[other, *[STATIC_ENTRY] * 7]] * 200))
    chosen = CountingOptions(corrects_bias=True)
    found = read_and_replay(Inputs(profiles=(recording, recording), binary=STATIC, counting=chosen))
    assert len(readings) == 2 * 2
    told = look_again(found, [FIRST_TIMES, ENTRIES])
    assert len(readings) == 3 * 2
    assert told[FIRST_TIMES].address.tolist() == sorted(STATIC_ENTRY[:2])
    assert set(told[ENTRIES].from_.tolist()) == {STATIC_ENTRY[0]}


def test_what_was_found_stays_when_something_else_is_asked_for(walk: tuple[Path, Path]) -> None:
    recording, binary = walk
    work = Work(read_and_replay(Inputs(profiles=(recording,), binary=binary)), Timings(), findings)
    (in_contexts,) = findings(work)
    before = work.told(in_contexts)
    assert work.told(FIRST_TIMES) is not None  # which nobody announced
    assert work.told(in_contexts) is before


def test_nothing_is_read_again_where_nobody_asks(readings: list[str], tmp_path: Path) -> None:
    recording = tmp_path / "perf.data"
    recording.write_bytes(recorded([[STATIC_ENTRY] * 8] * 100))
    for corrects_bias in (False, True):
        readings.clear()
        counting = CountingOptions(corrects_bias=corrects_bias)
        made = (output("fdata", tmp_path / "fdata"),)
        convert(ConvertOptions((recording,), STATIC, outputs=made, counting=counting))
        assert readings == [str(recording)]
