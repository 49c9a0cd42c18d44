"""`lbr2pgo convert` with several images."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from builders.recordings import PIE, RECORDING, STATIC, STATIC_ENTRY, recorded

ROOT = Path(__file__).parents[2]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Of the static program, mapped where it lies."""
    path = tmp_path / "perf.data"
    path.write_bytes(recorded([[STATIC_ENTRY] * 3], path=str(STATIC.resolve())))
    return path


def test_each_image_and_all_of_them_are_told(command, recording: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    answer = command("convert", recording, "--all-images", "--counts", tmp_path / "{name}.npz",
                     "--summary-json", summary, "--timings")  # fmt: skip
    assert answer.code == 0
    assert (tmp_path / "interp.static.npz").exists()
    assert answer.out.splitlines()[-1].split()[:3] == ["interp.static", "3", "100.00%"]
    told = json.loads(summary.read_text())
    schema = json.loads((ROOT / "docs/schemas/summary.schema.json").read_text())
    jsonschema.validate(told, schema)
    assert [image["binary"] for image in told["images"]] == [str(STATIC.resolve())]
    assert "read and count" in answer.err


def test_a_named_image_that_was_not_recorded_fails(
    command, recording: Path, tmp_path: Path
) -> None:
    words = ("convert", recording, "--binary", STATIC, "--binary", PIE)
    answer = command(*words, "--counts", tmp_path / "{name}.npz")
    assert answer.code == 2
    assert "no process in this recording mapped" in answer.err
    found = command(*words, "--all-images", "--counts", tmp_path / "{name}.npz")
    assert found.code == 2
    assert "1 other images have no branch in these samples" in found.out
    assert (tmp_path / "interp.static.npz").exists()


def test_outputs_need_a_name_for_each_image(command, tmp_path: Path) -> None:
    answer = command("convert", RECORDING, "--all-images", "--llvm", tmp_path / "x.prof")
    assert answer.code == 2
    assert "{name}" in answer.err
    assert command("convert", RECORDING, "--all-images", "--no-lbr").code == 2
    assert command("convert", RECORDING, "--all-images", "--build-id", "ab").code == 2


def test_what_questions_the_images_is_said_before_them(command, recording: Path) -> None:
    whole = recorded([[STATIC_ENTRY] * 3] * 2, path=str(STATIC.resolve()))
    recording.write_bytes(whole[:-40])
    out = recording.with_name("{name}.npz")
    answer = command("convert", recording, recording, "--all-images", "--counts", out)
    said = answer.err[: answer.err.index("wrote ")].splitlines()
    assert said[0] == f"warning: {recording} is given again: its samples count again"
    assert len(said) > 1
    assert all(line.startswith("warning: ") for line in said)
