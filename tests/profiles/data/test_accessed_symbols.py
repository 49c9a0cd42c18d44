"""What can't be said of data, and why."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from builders.fixtures import Tool

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.data.order import DataOrderOutput
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software
from lbr2pgo.support.errors import OutputError

from .conftest import recorded


def test_recordings_without_accesses_say_how_to_have_some(program: Path, tmp_path: Path) -> None:
    recording = tmp_path / "perf.data"
    options = RecordOptions(output=recording, command=(str(program),), period=32, emulate=True)
    record_software(options)
    with pytest.raises(OutputError, match="does not say which data was accessed") as caught:
        convert(ConvertOptions((recording,), program, outputs=(DataOrderOutput(tmp_path / "o"),)))
    assert "record --data" in str(caught.value)
    assert not (tmp_path / "o").exists()


def test_objects_that_share_a_name_are_told(tool: Tool, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.c").write_text(
            f"static volatile int same[64]; volatile int of_{name}[64];"
            f"void run_{name}(void) {{ for (int i = 0; i < 4000; i++)"
            f" {{ same[i & 63]++; of_{name}[i & 63]++; }} }}"
        )
    (tmp_path / "main.c").write_text("void run_a(), run_b(); int main() { run_a(); run_b(); }")
    command = [tool("clang-22"), "-O1", "a.c", "b.c", "main.c", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    recording = recorded(tmp_path / "program", tmp_path / "perf.data")
    output = DataOrderOutput(tmp_path / "order")
    done = convert(ConvertOptions((recording,), tmp_path / "program", outputs=(output,)))
    assert done.tallies["data_named/two_of_one_name"] == 2
    names = output.path.read_text().splitlines()[1:]
    assert {"of_a", "of_b"} <= set(names)
    assert "same" not in names


def test_stripped_programs_have_no_names(program: Path, tool: Tool, tmp_path: Path) -> None:
    stripped = tmp_path / "program"
    subprocess.run([tool("strip"), program, "-o", stripped], check=True)
    recording = recorded(stripped, tmp_path / "perf.data")
    with pytest.raises(OutputError):
        convert(ConvertOptions((recording,), stripped, outputs=(DataOrderOutput(tmp_path / "o"),)))
