"""What is told beside a profile, of real recordings and programs."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path

import jsonschema
import pytest
from builders.fixtures import ROOT, Run, Tool
from builders.recordings import PIE, RECORDING

import lbr2pgo
from lbr2pgo.program.elf.image import Image
from lbr2pgo.provenance.told import Provenance, read_provenance

EXACT = Path(str(RECORDING).replace(".perf.data", ".exact.npz"))


def told(profile: Path) -> Provenance:
    found = read_provenance(profile)
    assert found is not None
    return found


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def test_each_output_has_its_own(place: Path) -> None:
    outputs = {"llvm": place / "app.prof", "fdata": place / "app.fdata"}
    done = lbr2pgo.convert(place / "perf.data", place / "app", **outputs, provenance=True)
    assert [path.name for path in done.written] == [
        "app.prof", "app.fdata", "app.prof.json", "app.fdata.json",
    ]  # fmt: skip
    for name, path in outputs.items():
        found = told(path)
        assert (found.output, found.sha256) == (name, digest(path))
        assert found.build_id == Image.open(PIE).build_id
        assert found.compilers == ("Debian clang version 22.1.8 (1~deb12u1)",)
        (recording,) = found.recordings
        assert (recording.name, recording.sha256) == ("perf.data", digest(RECORDING))
        assert recording.recorder is not None
        assert "software LBR" in recording.recorder
        assert (recording.event, recording.period) == ("taken-branches:u", 9001)
        assert (found.samples, found.options) == (128, {})


def test_it_names_no_path_and_no_host(place: Path) -> None:
    lbr2pgo.convert(place / "perf.data", place / "app", llvm=place / "app.prof", provenance=True)
    text = (place / "app.prof.json").read_text()
    assert str(place) not in text
    assert '"/' not in text


@pytest.mark.parametrize("recording", [RECORDING, EXACT], ids=["sampled", "exact"])
def test_it_follows_its_schema(recording: Path, place: Path) -> None:
    schema = json.loads((ROOT / "docs/schemas/provenance.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    options = {"drop_newest": 1, "pid": [17737]} if recording == RECORDING else {}
    lbr2pgo.convert(recording, PIE, llvm=place / "x", stable=True, provenance=True, **options)
    found = json.loads((place / "x.json").read_text())
    jsonschema.validate(found, schema)
    assert found["options"]["output"] == {"stable": True}
    assert (found["samples"] is None) == found["recordings"][0]["is_exact"] == (recording == EXACT)
    del found["recordings"][0]["sha256"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, schema)


def test_flags_and_the_commit_are_those_of_the_build(tmp_path: Path, tool: Tool, run: Run) -> None:
    tool("qemu-x86_64")
    (tmp_path / "a.c").write_text(
        "int main(int n, char **w) { int s = 0; for (int i = 0; i < 1 << 20; i++) s ^= i % (n + 2);"
        " return s & 0; }\n"
    )
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for words in (("init", "-q"), ("add", "a.c"), (*who, "commit", "-qm", "x")):
        run(tool("git"), *words, cwd=tmp_path)
    head = run("git", "rev-parse", "HEAD", cwd=tmp_path).stdout.strip()
    run(tool("gcc"), "-O1", "-g", "-frecord-gcc-switches", "a.c", "-o", "a", cwd=tmp_path)
    lbr2pgo.record([tmp_path / "a"], output=tmp_path / "data", emulate=True)
    lbr2pgo.convert(tmp_path / "data", tmp_path / "a", llvm=tmp_path / "p", provenance=True)
    found = told(tmp_path / "p")
    assert found.revision == head
    assert any("-O1" in each for each in (*found.compilers, *found.flags))


def test_without_git_there_is_no_commit(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(place))
    lbr2pgo.convert(place / "perf.data", place / "app", llvm=place / "p", provenance=True)
    assert told(place / "p").revision is None


def test_where_there_is_no_file_to_lie_beside(command, place: Path) -> None:
    words = ("convert", place / "perf.data", "--binary", place / "app", "--provenance")
    os.mkfifo(place / "pipe")
    for stream in ("-", place / "pipe"):
        answer = command(*words, "--llvm", stream)
        assert (answer.code, answer.out) == (2, "")
        assert "has no place for a provenance beside it" in answer.err
    for stream in ("-", place / "pipe"):
        answer = command("convert", stream, *words[2:], "--llvm", place / "p")
        assert (answer.code, (place / "p").exists()) == (2, False)
        assert "it can be read only once" in answer.err
    (place / "p.json").mkdir()
    assert command(*words, "--llvm", place / "p").code == 2
    assert not (place / "p").exists()
    assert "--provenance is for one image" in command(*words, "--all-images").err


def test_it_is_never_written_over_an_input(command, place: Path) -> None:
    recording = (place / "perf.data").rename(place / "p.json")
    answer = command("convert", recording, "--binary", place / "app", "--llvm", place / "p",
                     "--provenance")  # fmt: skip
    assert answer.code == 2
    assert recording.read_bytes() == RECORDING.read_bytes()
