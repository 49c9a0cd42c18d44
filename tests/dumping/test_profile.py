from __future__ import annotations

from pathlib import Path

import pytest

from lbr2pgo.dumping.profile import lines
from lbr2pgo.profiles.llvm import extbinary as llvm_extbinary
from lbr2pgo.profiles.llvm import text as llvm_text
from lbr2pgo.support.errors import InputError

TEXT = """\
main:100:1
 1: 20
 2: 30 callee:12
 3: inlined:50
  1: 50
  2.4: callee:7
   1: 7
callee:40:12
 1: 12
"""
FDATA = """\
boltedcollection
1 main 3 1 callee 0 2 10
1 callee 5 0 [unknown] 0 0 3
2 local/x.c/1 1 2 local/x.c/1 9 0 4
1 odd\\ name 1 1 main 0 0 1
"""


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "profile"
    path.write_text(TEXT)
    return path


@pytest.fixture
def fdata(tmp_path: Path) -> Path:
    path = tmp_path / "fdata"
    path.write_text(FDATA)
    return path


def binary(text: Path, **options: bool) -> Path:
    path = text.with_name("binary")
    llvm_extbinary.write(llvm_text.read(text), path, llvm_extbinary.Options(**options))
    return path


def test_whole_files_are_shown_as_text(profile: Path, fdata: Path) -> None:
    assert list(lines(profile)) == TEXT.splitlines()
    assert list(lines(binary(profile))) == TEXT.splitlines()
    assert list(lines(fdata)) == FDATA.splitlines()


def test_a_function_with_its_inlined_copies(profile: Path) -> None:
    expected = ["callee:40:12", " 1: 12", "# inlined, 7 samples: main:3 @ inlined:2.4 @ callee"]
    assert list(lines(profile, "callee")) == expected
    assert list(lines(binary(profile), "callee")) == expected


def test_a_function_that_was_always_inlined(profile: Path) -> None:
    assert list(lines(profile, "inlined")) == ["# inlined, 50 samples: main:3 @ inlined"]


def test_a_function_whose_name_is_stored_as_a_hash(profile: Path) -> None:
    path = binary(profile, md5_names=True)
    assert list(lines(path, "callee"))[1:2] == [" 1: 12"]


def test_a_function_of_fdata(fdata: Path) -> None:
    assert list(lines(fdata, "callee")) == FDATA.splitlines()[:3]
    assert list(lines(fdata, "odd name")) == ["boltedcollection", "1 odd\\ name 1 1 main 0 0 1"]
    for name in ("local", "local/x.c/1"):
        assert list(lines(fdata, name))[1:] == ["2 local/x.c/1 1 2 local/x.c/1 9 0 4"]


def test_fdata_of_samples(tmp_path: Path) -> None:
    path = tmp_path / "fdata"
    path.write_text("no_lbr cycles\n1 main 3 7\n1 other 3 7\n")
    assert list(lines(path, "main")) == ["no_lbr cycles", "1 main 3 7"]


@pytest.mark.parametrize("kind", ["profile", "fdata"])
def test_near_matches_of_a_function_that_is_not_there(
    kind: str, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(kind)
    with pytest.raises(InputError, match=f"{path}: holds nothing of calee\nNear matches: callee"):
        lines(path, "calee")
    with pytest.raises(InputError, match="Leave the name out"):
        lines(path, "zzzzzzzzzzzz")


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "is empty"), (b"hello\n", "no written"), (b"PERFILE2" * 9, "no written")],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        lines(path)
    with pytest.raises(InputError, match="can't be read"):
        lines(tmp_path / "missing")
    with pytest.raises(InputError, match="can't be read"):
        lines(tmp_path)
