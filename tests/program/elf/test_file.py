"""Reading a file that others may write to meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from builders.outputs import outputs
from builders.recordings import PIE, RECORDING

from lbr2pgo.conversion import ConvertOptions, IncompleteError, convert
from lbr2pgo.program.elf import file as module
from lbr2pgo.program.elf.file import FileInMemory, StoredFile
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.support.errors import InputError

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(CONTENT)
    return tmp_path / "file"


@pytest.mark.parametrize("kind", ["stored", "in memory"])
def test_a_part_is_read_as_far_as_the_file_goes(kind: str, path: Path) -> None:
    file = StoredFile(path) if kind == "stored" else FileInMemory("x", CONTENT)
    assert file.size == len(CONTENT)
    for offset in (0, 1, 5000, len(CONTENT) - 1, len(CONTENT), len(CONTENT) + 7):
        for size in (-1, 0, 1, 100, len(CONTENT), 1 << 40):
            assert file.read(offset, size) == CONTENT[offset : offset + max(size, 0)]
    file.check_unchanged()


def test_parts_too_large_for_one_read_are_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONGEST_READ", 1000)
    assert StoredFile(path).read(10, 9999) == CONTENT[10:10009]


def test_a_file_that_is_cut_is_an_error(path: Path) -> None:
    file = StoredFile(path)
    os.truncate(path, 5000)
    assert file.read(0, 5000) == CONTENT[:5000]
    with pytest.raises(InputError, match="changed while it was read") as caught:
        file.read(4000, 2000)
    assert caught.value.where == str(path)
    with pytest.raises(InputError, match="changed while it was read"):
        file.check_unchanged()


def test_a_file_that_is_written_to_is_an_error(path: Path) -> None:
    os.utime(path, (1, 1))
    file = StoredFile(path)
    with path.open("r+b") as stream:
        stream.write(b"new")
    with pytest.raises(InputError, match="changed while it was read"):
        file.check_unchanged()


def test_a_file_that_is_replaced_stays_what_it_was(path: Path, tmp_path: Path) -> None:
    """As linkers do: they write a new file and give it the name."""
    file = StoredFile(path)
    (tmp_path / "new").write_bytes(b"new")
    os.replace(tmp_path / "new", path)
    assert file.read(0, 10) == CONTENT[:10]
    file.check_unchanged()


def test_a_file_that_is_gone_is_closed(path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    file = StoredFile(path)
    assert len(os.listdir("/proc/self/fd")) == len(before) + 1
    del file
    assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.parametrize("name", ["missing", ".", "a\0b"])
def test_what_is_no_file_is_said(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        StoredFile(tmp_path / name)
    assert caught.value.cure


class TestPrograms:
    """That change while a recording of them is read."""

    @pytest.fixture
    def program(self, tmp_path: Path) -> Path:
        (tmp_path / "program").write_bytes(PIE.read_bytes())
        return tmp_path / "program"

    @pytest.mark.parametrize("size", [0, 100, 3000, 20_000])
    def test_a_conversion_of_one_that_is_cut_writes_nothing(
        self, size: int, program: Path, tmp_path: Path
    ) -> None:
        paths = {name: tmp_path / name for name in ("llvm", "fdata", "counts", "preaggregated")}
        options = ConvertOptions((RECORDING,), program, outputs=outputs(**paths))
        with pytest.raises((InputError, IncompleteError), match="changed while it was read"):
            convert(options, progress=lambda _: os.truncate(program, size))
        assert not any(path.exists() for path in paths.values())

    def test_a_conversion_of_one_that_is_linked_again_in_place_writes_nothing(
        self, program: Path, tmp_path: Path
    ) -> None:
        os.utime(program, (1, 1))
        options = ConvertOptions((RECORDING,), program, outputs=outputs(fdata=tmp_path / "fdata"))
        with pytest.raises(IncompleteError, match="changed while it was read"):
            convert(options, progress=lambda _: void(program.write_bytes(PIE.read_bytes())))
        assert not (tmp_path / "fdata").exists()

    def test_a_report_of_one_that_is_cut_is_refused(self, program: Path) -> None:
        options = ReportOptions((RECORDING,), program)
        with pytest.raises(InputError, match="changed while it was read"):
            make_report(options, progress=lambda _: os.truncate(program, 3000))

    @pytest.mark.parametrize("after", [0.02, 0.05, 0.1, 0.2, 0.3, 0.5])
    def test_a_cut_at_any_time_is_no_crash(
        self, after: float, program: Path, tmp_path: Path
    ) -> None:
        fdata, whole = tmp_path / "fdata", tmp_path / "whole"
        convert(ConvertOptions((RECORDING,), PIE, outputs=outputs(fdata=whole)))
        command = [sys.executable, "-m", "lbr2pgo", "convert", RECORDING, "--binary", program,
                   "--fdata", fdata, "--llvm", tmp_path / "llvm"]  # fmt: skip
        with subprocess.Popen(
            [*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as child:
            time.sleep(after)
            os.truncate(program, 3000)
            _, said = child.communicate()
        assert child.returncode in (0, 2), said
        assert (child.returncode == 2) == ("error" in said)
        assert not fdata.exists() or fdata.read_bytes() == whole.read_bytes()


def void(_: object) -> None:
    """Nothing."""
