"""Fetch misses of a real recording, by function and by line."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from builders.evidence import evidence
from builders.fixtures import TESTBINS, Tool
from builders.sources import Sample

from lbr2pgo.analyses.fetch_misses import fetch_misses
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.llvm.format import LlvmOutput
from lbr2pgo.recorders.front_end import PRESETS, Structure
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import RecordResult, record_software
from lbr2pgo.reports.build import ReportOptions, make_report

SHAPES = TESTBINS / "x86-64" / "shapes.static"


def recorded(output: Path, period: int, **changes: Structure) -> RecordResult:
    front_end = replace(PRESETS["skylake"], **changes) if changes else None
    command = (str(SHAPES), "1")
    options = RecordOptions(
        output=output, command=command, period=period, emulate=True, front_end=front_end
    )
    # What pytest tells there is of another length in each test, and the program's stack begins
    # elsewhere.
    return record_software(
        options, {name: os.environ[name] for name in os.environ if name != "PYTEST_CURRENT_TEST"}
    )


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> tuple[Path, RecordResult]:
    """Every miss of a cache of 16 lines."""
    tool("qemu-x86_64")
    output = tmp_path_factory.mktemp("misses") / "perf.data"
    return output, recorded(output, 100, l1i=Structure(16, 2, 0))


def test_every_miss_is_in_the_table(recording: tuple[Path, RecordResult]) -> None:
    path, result = recording
    assert result.front_end is not None
    options = ReportOptions((path,), SHAPES, only=("fetch-misses",), top=None, libraries=False)
    report = make_report(options)
    by_function, by_line = report.tables
    assert dict(report.details)["event"] == "taken-branches:u"
    assert by_function.title.endswith("(simulated)")
    assert sum(by_function.column("samples")) == result.front_end.l1i  # type: ignore[arg-type]
    assert sum(by_function.column("share")) == pytest.approx(1)  # type: ignore[arg-type]
    names = by_function.column("function")
    assert {"_int_malloc", "main"} <= set(names[:10])  # items are made, sorted and thrown
    assert any(str(line).startswith("shapes.cpp:") for line in by_line.column("line")[:5])
    counts = by_function.column("samples")
    assert list(counts) == sorted(counts, reverse=True)  # type: ignore[type-var]


def test_misses_of_two_recordings_add_up(recording: tuple[Path, RecordResult]) -> None:
    path, result = recording
    assert result.front_end is not None
    options = ReportOptions((path, path), SHAPES, only=("fetch-misses",), top=None, libraries=False)
    by_function, _ = make_report(options).tables
    assert sum(by_function.column("samples")) == 2 * result.front_end.l1i  # type: ignore[arg-type]


def test_one_function_may_be_asked_for(recording: tuple[Path, RecordResult]) -> None:
    options = ReportOptions((recording[0],), SHAPES, only=("fetch-misses",), function="main",
                            libraries=False)  # fmt: skip
    by_function, _ = make_report(options).tables
    assert by_function.column("function") == ("main",)
    assert 0 < by_function.column("share")[0] < 1  # type: ignore[operator]


def test_recordings_without_any_say_how_to_have_some() -> None:
    for table in fetch_misses(evidence(Sample([(0x1016, 0x1005)]))):
        assert table.rows == ()
        assert "--model" in table.notes[0]


def test_misses_enter_no_profile(recording: tuple[Path, RecordResult], tmp_path: Path) -> None:
    recorded(tmp_path / "perf.data", 100)
    profiles = tmp_path / "with", tmp_path / "without"
    for path, profile in zip((recording[0], tmp_path / "perf.data"), profiles, strict=True):
        convert(ConvertOptions((path,), SHAPES, outputs=(LlvmOutput(profile),)))
    with_misses, without = (profile.read_bytes() for profile in profiles)
    assert with_misses == without
