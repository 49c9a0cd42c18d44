"""Formats are recognised from content, and whatever is no profile is refused with words."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from builders.perf_data import Event, Sample, file_form, pipe_form

from lbr2pgo import sources
from lbr2pgo.model.branch_counts import BRANCH, FROM, TO, aggregate
from lbr2pgo.profiles.counts import saved_counts
from lbr2pgo.sources import formats, open_source
from lbr2pgo.sources.base import SNIFF_SIZE, CountSource, Sniff, SourceFormat, StackSource
from lbr2pgo.support.errors import InputError

EVENT = Event()
RECORDS = Sample(((0x401000, 0x401010, 2),)).encode(EVENT)


def saved() -> bytes:
    one = np.array([1], np.uint64)
    stream = io.BytesIO()
    saved_counts.write(
        aggregate(one, one, one, np.array([BRANCH | FROM | TO], np.uint8), one, one), stream
    )
    return stream.getvalue()


SAMPLES = {
    "perf_data": file_form([EVENT], RECORDS),
    "perf_data in a pipe": pipe_form([EVENT], RECORDS),
    "saved_counts": saved(),
    "perf_script": b" 401010 0x401000/0x401010/P/-/-/0  0x401020/0x401000/P/-/-/0\n",
    "perf_script with mappings": (
        b"PERF_RECORD_MMAP2 7/7: [0x401000(0x1000) @ 0x1000 08:01 1 1]: r-xp /bin/x\n"
        b" 401010 0x401000/0x401010/P/-/-/0\n"
    ),
    "preaggregated": b"B 401000 401010 5 0\nF 401010 401020 5\n",
    "preaggregated traces": b"T 401000 401010 401020 5\n",
    "autofdo_text": b"1\n1000-1010:5\n0\n1\n1010->1000:5\n",
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_each_format_is_recognised_by_one_reader_whatever_the_name(
    name: str, tmp_path: Path
) -> None:
    head = SAMPLES[name][:SNIFF_SIZE]
    answers = {form.name: form.sniff(head) for form in formats()}
    assert list(answers.values()).count(Sniff.YES) == 1, answers
    path = tmp_path / "a profile.txt"
    path.write_bytes(SAMPLES[name])
    source = open_source(path)
    assert isinstance(source, StackSource | CountSource)
    expected = next(f.name for f in formats() if answers[f.name] is Sniff.YES)
    assert source.info.format == expected
    assert source.info.path == str(path)


def test_every_format_says_what_it_is() -> None:
    names = [form.name for form in formats()]
    assert len(set(names)) == len(names) > 5
    for form in formats():
        assert form.summary
        assert form.references, f"{form.name} names no source"
        assert form.sniff(b"") is not Sniff.YES


def test_every_reader_is_registered() -> None:
    """A module with a FORMAT that `_MODULES` lacks would never be asked."""
    folder = Path(sources.__file__).parent
    having = {
        path.relative_to(folder).with_suffix("").as_posix().replace("/", ".")
        for path in folder.rglob("*.py")
        if "\nFORMAT = " in path.read_text()
    }
    assert having == set(sources._MODULES)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\n", "no profile"),
        (b"int main(void) { return 0; }\n", "no profile"),
        (bytes(range(256)) * 300, "no profile"),
        (b"\x89PNG\r\n\x1a\n", "no profile"),
        (b"\xff\xfe\x00\x01", "no profile"),
    ],
)
def test_what_is_no_profile_is_refused_with_what_is_readable(
    content: bytes, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as error:
        open_source(path)
    assert error.value.where == str(path)
    for form in formats():
        assert form.name in (error.value.cure or "")


@pytest.mark.parametrize("content", [b"PERFILE2", b"PERFILE2" + b"\xff" * 96, saved()[:200]])
def test_a_broken_file_of_a_known_format_is_left_to_no_other_reader(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_whole(path)
    assert "no profile of a known format" not in error.value.what


def read_whole(path: Path) -> None:
    source = open_source(path)
    assert isinstance(source, StackSource)
    assert sum(len(batch) for batch in source.batches()) == 0


@pytest.mark.parametrize("form", formats(), ids=lambda form: form.name)
def test_what_can_t_be_read_is_an_input_error(form: SourceFormat, tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(InputError, match=r"No such file|Is a directory|Cannot open"):
            list(form.open(path).batches())


def test_a_missing_file_names_its_path_and_reason(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file") as error:
        open_source(tmp_path / "none")
    assert error.value.where == str(tmp_path / "none")


def test_a_directory_is_perfs_if_it_holds_data(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        open_source(tmp_path)


def test_standard_input_can_be_read_more_than_once(monkeypatch: pytest.MonkeyPatch) -> None:
    content = SAMPLES["perf_script"]
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    source = open_source("-")
    assert isinstance(source, StackSource)
    for _ in range(2):
        assert sum(len(batch.entries) for batch in source.batches()) == 2
