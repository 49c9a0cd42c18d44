"""A program that is built anew does not take its recording's use away."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from builders.fixtures import Tool
from builders.recordings import STATIC, recording_of

import lbr2pgo
from lbr2pgo.cli import main
from lbr2pgo.replay.kept_programs import keep_programs
from lbr2pgo.support.errors import InputError

PROGRAM = """
#include <stdio.h>
static volatile int sink;
__attribute__((noinline)) static void work(int n) { for (int i = 0; i < n; i++) sink += i % 3; }
int main(void) { work(ROUNDS); printf("done\\n"); return 0; }
"""


class Built:
    """A program in a folder, recorded with `--keep-binary`."""

    def __init__(self, folder: Path, compiler: str) -> None:
        self.folder, self.compiler = folder, compiler
        self.program, self.recording = folder / "app", folder / "perf.data"
        (folder / "app.c").write_text(PROGRAM)
        self.build(20_000)

    def build(self, rounds: int, *flags: str) -> None:
        source = self.folder / "app.c"
        command = [self.compiler, "-O1", "-g", f"-DROUNDS={rounds}", *flags, source]
        subprocess.run([*command, "-o", self.program], check=True, capture_output=True)

    def record(self, *options: str) -> int:
        words = ["record", "--emulate", "-c", "101", "-o", str(self.recording), *options]
        return main([*words, "--keep-binary", "--", str(self.program)])

    def profile(self, *options: str) -> str:
        path = self.folder / "app.prof"
        assert main(["convert", str(self.recording), *options, "--llvm", str(path)]) == 0
        return path.read_text()

    @property
    def kept(self) -> list[Path]:
        return sorted((self.folder / "perf.data.binaries").glob("*/*"))


@pytest.fixture
def built(tmp_path: Path, tool: Tool) -> Built:
    tool("qemu-x86_64")
    return Built(tmp_path, tool("gcc"))


def test_the_recorded_build_is_taken_once_the_program_is_another(
    built: Built, capsys: pytest.CaptureFixture[str]
) -> None:
    assert built.record() == 0
    (kept,) = built.kept
    assert kept.read_bytes() == built.program.read_bytes()
    assert os.access(kept, os.X_OK)
    assert re.search(rf"wrote {kept} \(.*\): the recorded program", capsys.readouterr().err)
    named = ("--binary", str(built.program))
    before = built.profile()
    assert built.profile(*named) == before
    assert str(kept) not in capsys.readouterr().err
    built.build(30_000, "-O2")
    assert built.profile() == before
    assert f"the program is {kept}, as recorded" in capsys.readouterr().err
    assert built.profile(*named) == before
    said = f"{built.program} was built anew since: the program is {kept}, as recorded"
    assert said in capsys.readouterr().err
    assert said in lbr2pgo.report(built.recording, built.program).notes
    counts = built.folder / "all.npz"
    assert main(["merge", str(built.recording), *named, "-o", str(counts)]) == 0
    assert said in capsys.readouterr().err
    built.program.unlink()
    assert built.profile() == before


def test_every_command_takes_the_recorded_build(
    built: Built, capsys: pytest.CaptureFixture[str]
) -> None:
    exact, binary = built.folder / "exact.npz", str(built.program)
    assert built.record("--exact", str(exact)) == 0
    (kept,), recording = built.kept, str(built.recording)

    def answers(folder: Path, *named: str) -> list[str]:
        found = list[str]()
        folder.mkdir()
        out, store = folder / "{name}.fdata", str(folder / "all.parquet")
        for words in (
            ["convert", recording, "--all-images", "--fdata", str(out)],
            ["convert", recording, *named, "--fdata", str(out)],
            ["merge", recording, *named[:2], "-o", str(built.folder / "counts.npz")],
            ["accuracy", recording, *named[:2], "--exact", str(exact)],
            ["accuracy", recording, *named[:2], "--exact", str(exact), "--curves"],
            ["dump", "stacks", recording, *named[:2], "--limit", "5"],
            ["dump", "counts", recording, *named[:2]],
            ["fleet", recording, "-o", store, "--fdata", str(out)],
        ):
            assert main(words) == 0, words
            written = folder / "app.fdata"
            found.append(written.read_text() if str(out) in words else "")
            written.unlink(missing_ok=True)
            found.append(capsys.readouterr().out.replace(str(folder), "here"))
        return found

    libc = next(Path("/usr/lib").rglob("libc.so.6"))
    named = ("--binary", binary, "--binary", str(libc))
    before = answers(built.folder / "before", *named)
    built.build(30_000, "-O2")
    after = [text.replace(str(kept), binary) for text in answers(built.folder / "after", *named)]
    assert after == before


def test_a_check_is_of_the_recorded_build_and_of_how_it_fits_the_one_that_is_there(
    built: Built, capsys: pytest.CaptureFixture[str]
) -> None:
    assert built.record() == 0
    (kept,) = built.kept
    source = built.folder / "app.c"
    source.write_text("\n\n" + PROGRAM.replace("int i = 0; i < n", "int i = n % 2;\n i < n"))
    built.build(20_000, "-O2")
    capsys.readouterr()
    words = ["check", str(built.recording), "--binary"]
    explicit = main([*words, str(kept), "--new-build", str(built.program), "--max-stale", "1"])
    told = capsys.readouterr().out
    assert main([*words, str(built.program), "--max-stale", "1"]) == explicit
    answer = capsys.readouterr()
    assert answer.out == told
    assert f"{built.program} was built anew since {kept} was recorded" in answer.err


def test_the_next_recording_keeps_its_own_and_the_one_before_has_its_too(built: Built) -> None:
    assert built.record() == 0
    before = built.profile()
    built.build(30_000)
    assert built.record() == 0
    assert len(built.kept) == 2
    old = lbr2pgo.convert(built.folder / "perf.data.old", built.program)
    assert old.binary in built.kept
    assert lbr2pgo.convert(built.recording).binary == built.program
    built.recording.unlink()
    (built.folder / "perf.data.old").rename(built.recording)
    assert built.profile() == before


def test_without_it_another_build_is_refused_as_before(built: Built) -> None:
    assert built.record() == 0
    shutil.rmtree(built.folder / "perf.data.binaries")
    built.build(30_000)
    for binary in (None, built.program):
        with pytest.raises(InputError, match="another build"):
            lbr2pgo.convert(built.recording, binary)


def test_what_was_kept_and_changed_is_not_taken(built: Built) -> None:
    assert built.record() == 0
    built.build(30_000)
    shutil.copy(built.program, built.kept[0])
    with pytest.raises(InputError, match="another build"):
        lbr2pgo.convert(built.recording)


def test_all_programs_of_a_command_are_kept(built: Built) -> None:
    script = f"{built.program}; exit 3"
    words = ["record", "--emulate", "-c", "101", "-o", str(built.recording), "--keep-binary"]
    assert main([*words, "--", "sh", "-c", script]) == 3
    assert "app" in {path.name for path in built.kept}


def test_a_program_without_a_build_id_is_not_kept_and_that_is_said(
    built: Built, capsys: pytest.CaptureFixture[str]
) -> None:
    built.build(20_000, "-Wl,--build-id=none")
    assert built.record() == 0
    assert built.kept == []
    assert f"Warning: {built.program} was not kept: it has no build-id" in capsys.readouterr().err


def test_a_program_that_is_another_build_by_then_is_not_kept(tmp_path: Path) -> None:
    program = Path(shutil.copy(STATIC, tmp_path / "app"))
    recording = recording_of(program)
    program.unlink()
    kept, (problem,) = keep_programs(recording)
    assert kept == []
    assert problem == f"{program} was not kept: it is another build now, or gone"


@pytest.mark.parametrize("other", ["--dry-run", "--continuous"])
def test_it_is_for_one_recording_in_a_file(
    other: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["record", "--keep-binary", other, "-o", str(tmp_path / "x"), "--", "true"]
    assert main(words) == 2
    assert "--keep-binary is for one recording in a file" in capsys.readouterr().err
