"""Damage to real files: an answer or a clear refusal, in bounded time and memory.

Each case runs in a process of its own (see `builders/mutations.py`), where a traceback, ten
seconds, or a gigabyte are failures, and where a recording that was cut off must give no count
that the whole one does not have, and must not lose any silently.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.fixtures import TESTBINS, Tool
from builders.outputs import every_form, outputs, usual_forms

from lbr2pgo.conversion import ConvertOptions, convert

RUNNER = Path(__file__).parent / "builders" / "mutations.py"
SEED = 20260101
FEW, MANY = 30, 1000

pytestmark = pytest.mark.slow

RECORDINGS = sorted(path.name for path in (TESTBINS / "recordings").glob("*.perf.data"))


def binary_of(recording: str) -> Path:
    machine, name = recording.removesuffix(".perf.data").rsplit("-", 1)
    return TESTBINS / machine / name


Written = Callable[[str], Path]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A file of each form that is written, from a shipped recording."""
    folder = tmp_path_factory.mktemp("written")
    recording = RECORDINGS[-2]
    assert "shapes" in recording
    options = ConvertOptions(
        (TESTBINS / "recordings" / recording,), binary_of(recording), outputs=every_form(folder)
    )
    convert(options)
    return lambda name: folder / name


@pytest.fixture
def damage() -> Callable[[str, Path, Path, int], None]:
    """Run so many damages of a file of a kind, and expect each to end well."""

    def check(kind: str, file: Path, other: Path, count: int) -> None:
        words = [sys.executable, RUNNER, kind, file, other, SEED, 0, count]
        done = subprocess.run([*map(str, words)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert not found["bad"], found["bad"][0]["said"]
        assert sum(found["outcomes"].values()) == count
        assert found["peak"] < 1 << 30
        assert found["outcomes"].get("good"), "damage that nothing survives tests only the refusals"

    return check


COUNTS = [FEW, pytest.param(MANY, marks=pytest.mark.long)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings(name: str, count: int, damage) -> None:
    damage("profile", TESTBINS / "recordings" / name, binary_of(name), count)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", RECORDINGS)
def test_binaries(name: str, count: int, damage) -> None:
    damage("binary", binary_of(name), TESTBINS / "recordings" / name, count)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", [form.key for f, form in usual_forms() if not f.readers()])
def test_counts(name: str, count: int, damage, written: Written) -> None:
    damage("profile", written(name), binary_of(RECORDINGS[-2]), count)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", RECORDINGS[:1] + RECORDINGS[-1:])
def test_records_that_are_packed(name: str, count: int, damage) -> None:
    damage("profile@zstd", TESTBINS / "recordings" / name, binary_of(name), count)


@pytest.mark.parametrize("count", COUNTS)
def test_members_of_saved_counts(count: int, damage, written: Written) -> None:
    damage("profile@zip", written("saved_counts"), binary_of(RECORDINGS[-2]), count)


@pytest.mark.parametrize("count", COUNTS)
def test_members_of_exact_counts(count: int, damage) -> None:
    exact = TESTBINS / "recordings" / "x86-64-shapes.pie.exact.npz"
    damage("exact@zip", exact, exact, count)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", [form.key for f, form in usual_forms() if f.readers()])
def test_written_profiles(name: str, count: int, damage, written: Written) -> None:
    damage("written", written(name), written(name), count)


@pytest.mark.parametrize("count", COUNTS)
def test_perf_script_text(count: int, damage, tmp_path: Path, tool, run) -> None:
    recording = TESTBINS / "recordings" / RECORDINGS[-2]
    text = run(
        tool("perf"), "script", "-i", recording, "-F", "comm,pid,time,ip,brstack",
        "--show-mmap-events", check=False,
    ).stdout  # fmt: skip
    script = tmp_path / "script.txt"
    script.write_text(text)
    damage("profile", script, binary_of(recording.name), count)


@pytest.mark.parametrize("count", COUNTS)
def test_bolt_yaml_as_counts_of_its_program(count: int, damage, tmp_path: Path, tool: Tool) -> None:
    tool("llvm-bolt-22")
    name, yaml = RECORDINGS[-2], tmp_path / "app.yaml"
    recording, binary = TESTBINS / "recordings" / name, binary_of(name)
    convert(ConvertOptions((recording,), binary, outputs=outputs(bolt_yaml=yaml)))
    damage("report", yaml, binary, count)


@pytest.mark.parametrize("count", COUNTS)
def test_the_translation_of_a_program_that_bolt_made(
    count: int, damage, tmp_path: Path, tool: Tool, run
) -> None:
    name, plain, bolted = RECORDINGS[-2], tmp_path / "app.fdata", tmp_path / "app.bolted"
    recording, binary = TESTBINS / "recordings" / name, binary_of(name)
    convert(ConvertOptions((recording,), binary, outputs=outputs(fdata=plain)))
    words = ("-enable-bat", "-reorder-blocks=ext-tsp", "-split-functions", "-update-debug-sections")
    run(tool("llvm-bolt-22"), binary, "-data", plain, "-o", bolted, *words)
    traces = tmp_path / "traces"
    run(sys.executable, "-m", "lbr2pgo", "record", "--emulate", "-c", 5003, "-o", traces,
        "--", bolted, 20)  # fmt: skip
    damage("binary@bat", bolted, traces, count)
