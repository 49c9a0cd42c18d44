"""Every output of every command against every input, by each name that a file may have.

Options that are added to a command's formats stand in the matrix by themselves.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import pytest
from builders.recordings import PIE, RECORDING

from lbr2pgo.profiles.registry import formats

Name = Callable[[Path, Path], Path]


def itself(path: Path, folder: Path) -> Path:
    return path


def spelt_otherwise(path: Path, folder: Path) -> Path:
    return path.parent / "." / "there" / ".." / path.name


def symbolic_link(path: Path, folder: Path) -> Path:
    (folder / "symbolic").symlink_to(path)
    return folder / "symbolic"


def hard_link(path: Path, folder: Path) -> Path:
    os.link(path, folder / "hard")
    return folder / "hard"


NAMES: tuple[Name, ...] = (itself, spelt_otherwise, symbolic_link, hard_link)

CONVERT = ("convert", "{profile}", "{second}", "--binary", "{binary}")
REPORT = ("report", "{profile}", "{second}", "--binary", "{binary}")
MERGE = ("merge", "{profile}", "{second}", "--binary", "{binary}")
BOLT = ("bolt", "{binary}", "--fdata", "{fdata}")
RECORD = ("record", "--emulate")
PATHS = [
    option.flag.word
    for form in formats()
    for option in form.output.options()
    if option.is_path
]  # fmt: skip
COMMANDS: dict[tuple[str, ...], tuple[str, ...]] = {
    CONVERT: (*PATHS, "--summary-json"),
    REPORT: ("--html",),
    MERGE: ("-o",),
    BOLT: ("-o",),
    RECORD: ("-o", "--exact"),
}
"""The words that name inputs, and the options that name outputs."""


def with_inputs() -> Iterator[tuple[tuple[str, ...], str, str]]:
    for words, outputs in COMMANDS.items():
        inputs = [word.strip("{}") for word in words if word.startswith("{")]
        for output in outputs:
            for each in inputs or ["binary"]:
                yield words, output, each


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Inputs that may be lost, and a directory for names."""
    (tmp_path / "there").mkdir()
    found = {name: tmp_path / name for name in ("profile", "second", "binary", "fdata")}
    shutil.copy(PIE, found["binary"])
    for name in ("profile", "second"):
        shutil.copy(RECORDING, found[name])
    found["fdata"].write_text("1 main 0 1 main 4 0 7\n")
    return found


def ends(words: tuple[str, ...], files: dict[str, Path]) -> tuple[object, ...]:
    """What follows the options: the program that `record` runs."""
    return ("--", files["binary"]) if words == RECORD else ()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("words", "output", "taken"), list(with_inputs()))
def test_no_output_replaces_an_input(
    command, files: dict[str, Path], tmp_path: Path, words: tuple[str, ...], output: str,
    taken: str, name: Name,
) -> None:  # fmt: skip
    place = name(files[taken], tmp_path / "there")
    before = contents(tmp_path)
    given = [word.format(**files) for word in words]
    answer = command(*given, output, place, *ends(words, files))
    assert answer.code == 2
    assert "would be written over an input, a program that runs, or another output" in answer.err
    assert contents(tmp_path) == before


def pairs() -> Iterator[tuple[tuple[str, ...], str, str]]:
    for words, outputs in COMMANDS.items():
        for one, other in combinations(outputs, 2):
            yield words, one, other


@pytest.mark.parametrize(("words", "one", "other"), list(pairs()))
def test_no_output_replaces_another(
    command, files: dict[str, Path], tmp_path: Path, words: tuple[str, ...], one: str, other: str
) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")
    before = contents(tmp_path)
    given = [word.format(**files) for word in words]
    also = spelt_otherwise(target, tmp_path)
    answer = command(*given, one, target, other, also, *ends(words, files))
    assert answer.code == 2
    assert "or another output" in answer.err
    assert contents(tmp_path) == before
