"""Reading a file that others may write to meanwhile."""

from __future__ import annotations

import errno
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
from lbr2pgo.program.elf.image import Image
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
            assert file.view(offset, size) == CONTENT[offset : offset + max(size, 0)]
    file.check_unchanged()


def test_parts_too_large_for_one_read_are_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONGEST_READ", 1000)
    assert StoredFile(path).read(10, 9999) == CONTENT[10:10009]


@pytest.mark.parametrize("knows_holes", [True, False])
def test_a_large_part_is_whole_with_its_holes(
    knows_holes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, size = tmp_path / "sparse", 100_000
    whole = bytearray(size)
    with path.open("wb") as stream:
        for place in (0, 20_000, 50_000):
            stream.seek(place)
            stream.write(CONTENT[:9000])
            whole[place : place + 9000] = CONTENT[:9000]
        stream.truncate(size)
    monkeypatch.setattr(module, "_LARGE", 100)
    if not knows_holes:
        monkeypatch.setattr(os, "lseek", refuse)
    file = StoredFile(path)
    for start, count in ((0, size), (1, 30_000), (25_000, 40_000), (59_500, 1 << 30), (70_000, 99)):
        assert file.view(start, count) == whole[start : start + count]
    assert file.view(0, size).readonly


def refuse(*_: object) -> int:
    """As file systems do that know nothing of holes."""
    raise OSError(errno.EINVAL, "Invalid argument")


def test_a_large_part_of_a_file_that_is_cut_is_an_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LARGE", 100)
    file = StoredFile(path)
    os.truncate(path, 5000)
    with pytest.raises(InputError, match="changed while it was read"):
        file.view(0, file.size)


@pytest.mark.parametrize("name", ["read", "view"])
def test_a_disk_that_fails_is_said(name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(module, "_LARGE", 100)
    monkeypatch.setattr(os, "pread", fail)
    monkeypatch.setattr(os, "preadv", fail)
    with pytest.raises(InputError, match="can't be read: Input/output error") as caught:
        getattr(StoredFile(path), name)(0, 5000)
    assert caught.value.where == str(path)


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


@pytest.mark.slow
def test_a_sparse_program_of_3_gb_costs_what_a_small_one_costs(tmp_path: Path) -> None:
    """In memory: a hole in its data, which holds tables, and one behind the last section."""
    sparse, padded = tmp_path / "sparse", tmp_path / "padded"
    with_a_hole_in(".rodata", PIE, sparse, 3 << 30)
    padded.write_bytes(PIE.read_bytes())
    os.truncate(padded, 3 << 30)
    small, *large = (peak(program, tmp_path) for program in (PIE, sparse, padded))
    assert max(large) < small + 20
    assert max(large) < 250


def with_a_hole_in(name: str, program: Path, target: Path, size: int) -> None:
    """A copy whose section reaches over a hole up to its new end."""
    data = bytearray(program.read_bytes())
    image = Image.open(program)
    section = image.section(name)
    assert section is not None
    number = image.sections.index(section)
    header = int.from_bytes(data[40:48], "little") + 64 * number
    data[header + 32 : header + 40] = size.to_bytes(8, "little")
    target.write_bytes(data)
    os.truncate(target, section.file_offset + size)


def peak(program: Path, folder: Path) -> int:
    """MB of memory that a conversion took at most."""
    code = (
        "import re, sys; from lbr2pgo.cli import main; assert main(sys.argv[1:]) == 0\n"
        "status = open('/proc/self/status').read()\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', status)[1], file=sys.stderr)"
    )
    words = ["convert", RECORDING, "--binary", program, "--llvm", folder / "l", "--fdata",
             folder / "f"]  # fmt: skip
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    return int(done.stderr.split()[-1]) // 1024


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
            convert(options, progress=lambda *_: os.truncate(program, size))
        assert not any(path.exists() for path in paths.values())

    def test_a_conversion_of_one_that_is_linked_again_in_place_writes_nothing(
        self, program: Path, tmp_path: Path
    ) -> None:
        os.utime(program, (1, 1))
        options = ConvertOptions((RECORDING,), program, outputs=outputs(fdata=tmp_path / "fdata"))
        with pytest.raises(IncompleteError, match="changed while it was read"):
            convert(options, progress=lambda *_: void(program.write_bytes(PIE.read_bytes())))
        assert not (tmp_path / "fdata").exists()

    def test_a_report_of_one_that_is_cut_is_refused(self, program: Path) -> None:
        options = ReportOptions((RECORDING,), program)
        with pytest.raises(InputError, match="changed while it was read"):
            make_report(options, progress=lambda *_: os.truncate(program, 3000))

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
