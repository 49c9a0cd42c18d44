"""No combination of options reads a recording more than twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import pytest
from builders.binary_walks import BinaryWalk, HybridPlan
from builders.c_programs import CProgram
from builders.processes import LIBRARY, process_recording
from builders.recordings import PIE, STATIC, STATIC_ENTRY, recorded

from lbr2pgo.cli import main
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.counting.chosen_samples import CountingOptions
from lbr2pgo.evidence.entries import ENTRIES
from lbr2pgo.evidence.first_times import FIRST_TIMES
from lbr2pgo.evidence.second_look import SecondLook
from lbr2pgo.fleet.images import ImagesOptions, convert_images
from lbr2pgo.model.incomplete import IncompleteError
from lbr2pgo.profiles.base import Output
from lbr2pgo.profiles.registry import formats, output
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.sources.perf_data.reader import PerfData
from lbr2pgo.sources.perf_script.reader import PerfScript

CONTEXTS = {"sample_text", "extbinary", "unsymbolized_contexts"}
ASKS_AGAIN = {*CONTEXTS, "afdo_3", "startup_order", "temporal", "data_order", "data_access"}
CORRECTS = CountingOptions(corrects_bias=True)


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> tuple[Path, Path]:
    """A recording with call stacks, and its program."""
    binary = tmp_path_factory.mktemp("walk") / "p"
    CProgram(1).compile(binary, compiler=tool("clang-22"))
    recording = binary.with_suffix(".perfscript")
    steps = BinaryWalk(binary, 1)
    recording.write_text(steps.hybrid_script(steps.hybrid(500, HybridPlan())))
    return recording, binary


@pytest.fixture(scope="module")
def biased(walk: tuple[Path, Path]) -> tuple[Path, Path]:
    """The same with one branch at the newest end of all stacks."""
    recording, binary = walk
    changed = binary.with_suffix(".biased")
    sticks = re.sub(
        r"^ (0x\S+)", r" 0x401636/0x4015f0/P/-/-/1  \1", recording.read_text(), flags=re.M
    )
    changed.write_text(sticks)
    return changed, binary


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


def converted(options: ConvertOptions) -> None:
    with suppress(IncompleteError):  # some outputs want what the program lacks
        convert(options)


def test_no_combination_of_outputs_takes_more_than_two(
    walk: tuple[Path, Path], readings: list[str], tmp_path: Path
) -> None:
    recording, binary = walk
    every = outputs(tmp_path)
    sets = [{key} for key in every] + [set(pair) for pair in combinations(sorted(ASKS_AGAIN), 2)]
    for keys in (*sets, set(every)):
        for counting in (CountingOptions(), CORRECTS):
            readings.clear()
            made = tuple(every[key] for key in sorted(keys))
            converted(ConvertOptions((recording,), binary, outputs=made, counting=counting))
            assert len(readings) == (2 if keys & ASKS_AGAIN else 1), keys


@pytest.mark.parametrize("how", ["plain", "infer", "no_lbr"])
@pytest.mark.parametrize("keys", [{"fdata"}, CONTEXTS, {"afdo_3"}, {"fdata", *ASKS_AGAIN}])
def test_a_bias_is_corrected_in_the_reading_that_serves_outputs(
    how: str, keys: set[str], biased: tuple[Path, Path], readings: list[str], tmp_path: Path
) -> None:
    """They are those of the same samples without what the recorder prefers."""
    dropped = CountingOptions(drop_newest=1)
    written = []
    for name, counting in (("corrected", CORRECTS), ("dropped", dropped)):
        readings.clear()
        (where := tmp_path / name).mkdir()
        every = outputs(where)
        made = tuple(every[key] for key in sorted(keys))
        chosen = {} if how == "plain" else {how: True}
        options = ConvertOptions(
            *given(biased), outputs=made, counting=counting, force=True, **chosen
        )
        converted(options)
        finds = counting is CORRECTS and how != "no_lbr"
        asks = keys & (ASKS_AGAIN if how == "plain" else {"afdo_3"})
        assert len(readings) == (2 if finds or asks else 1)
        written.append({path.name: path.read_bytes() for path in where.iterdir()})
    if how != "no_lbr":  # which counts samples, whatever stacks they have
        assert written[0] == written[1]
        assert written[0]


def given(paths: tuple[Path, Path]) -> tuple[tuple[Path, ...], Path]:
    recording, binary = paths
    return (recording,), binary


def test_a_bias_is_found_once(readings: list[str], tmp_path: Path) -> None:
    """What was counted with a bias is counted anew, and seen again as it is counted then."""
    other = (0x22A8B8, 0x22A8C0, 2)
    recording = tmp_path / "perf.data"
    recording.write_bytes(recorded([[other, *[STATIC_ENTRY] * 7]] * 200))
    inputs = Inputs(profiles=(recording, recording), binary=STATIC, counting=CORRECTS)
    found = read_and_replay(inputs, asks=lambda found: SecondLook(found, [FIRST_TIMES, ENTRIES]))
    assert len(readings) == 2 * 2
    assert set(found.told[FIRST_TIMES].address.tolist()) == set(STATIC_ENTRY[:2])
    assert set(found.told[ENTRIES].from_.tolist()) == {STATIC_ENTRY[0]}


def test_nothing_is_read_again_where_nobody_asks(readings: list[str], tmp_path: Path) -> None:
    recording = tmp_path / "perf.data"
    recording.write_bytes(recorded([[STATIC_ENTRY] * 8] * 100))
    for counting in (CountingOptions(), CORRECTS):
        readings.clear()
        made = (output("fdata", tmp_path / "fdata"),)
        convert(ConvertOptions((recording,), STATIC, outputs=made, counting=counting))
        assert readings == [str(recording)]


@pytest.mark.parametrize("counting", [CountingOptions(), CORRECTS])
def test_all_images_are_converted_in_two(
    counting: CountingOptions, readings: list[str], tmp_path: Path
) -> None:
    recording = process_recording(
        tmp_path / "perf.data", {each: str(each) for each in (PIE, LIBRARY)}
    )
    made = (output("afdo", tmp_path / "{name}.afdo", version="3"),)
    options = ImagesOptions(
        profiles=(recording,), binaries=(PIE, LIBRARY), outputs=made, counting=counting
    )
    assert len(convert_images(options).images) == 2
    assert len(readings) == 2


def test_a_report_of_corrected_samples_takes_two(
    biased: tuple[Path, Path], readings: list[str]
) -> None:
    """It is that of samples without what was preferred."""
    shown = []
    for counting in (CORRECTS, CountingOptions(drop_newest=1)):
        readings.clear()
        report = make_report(ReportOptions(*given(biased), counting=counting, views=3, top=None))
        assert len(readings) == 2
        shown.append((report.tables, report.functions, report.call_tree))
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    "command", [["check"], ["dump", "cfg", "--function", "main", "--format", "json"]]
)
def test_checks_and_dumps_take_two(
    command: list[str], biased: tuple[Path, Path], readings: list[str]
) -> None:
    recording, binary = biased
    chosen = ["--correct-bias"] if command[0] == "dump" else []
    assert main([*command, str(recording), "--binary", str(binary), *chosen]) != 2
    assert len(readings) == 2
