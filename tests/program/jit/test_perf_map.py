from __future__ import annotations

from pathlib import Path

import pytest

from lbr2pgo.program.jit.perf_map import read_perf_map
from lbr2pgo.support.errors import InputError


def test_lines_of_v8_java_and_python(tmp_path: Path) -> None:
    path = tmp_path / "perf-7.map"
    path.write_text(
        "7F7F70005B80 224 JS:*inner /opt/a b/hot.js:1:15\n"
        "0x00007f31ad4fdba0 0x0000000000000110 int Hot.inner(int[], int)\r\n"
        "7faeb66b67d2 b py::inner:/opt/hot.py\n\n"
    )
    functions, unusable = read_perf_map(path)
    assert unusable == 0
    assert [(f.address, f.size, f.name.decode()) for f in functions] == [
        (0x7F7F70005B80, 0x224, "JS:*inner /opt/a b/hot.js:1:15"),
        (0x7F31AD4FDBA0, 0x110, "int Hot.inner(int[], int)"),
        (0x7FAEB66B67D2, 0xB, "py::inner:/opt/hot.py"),
    ]


def test_the_last_of_several_at_one_place_counts(tmp_path: Path) -> None:
    path = tmp_path / "perf-7.map"
    path.write_text("1000 20 old\n1010 20 new\n2000 8 alone\n")
    assert [f.name for f in read_perf_map(path)[0]] == [b"new", b"alone"]


def test_lines_that_say_nothing_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "perf-7.map"
    path.write_bytes(
        b"1000 20 good\n1000\nffffffffffffffff 20 where\n2000 0 no size\n3000 20000000 huge\n"
        b"xyz 10 f\n4000 10 \xff\xfe\n5000 1"
    )
    functions, unusable = read_perf_map(path)
    assert [f.name for f in functions] == [b"good", b"\xff\xfe"]
    assert unusable == 6


@pytest.mark.parametrize("content", [b"no such file\n", b"\x7fELF\0\0\1\n"])
def test_what_is_no_map_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "perf-7.map"
    path.write_bytes(content)
    with pytest.raises(InputError, match="holds no line"):
        read_perf_map(path)
    with pytest.raises(InputError, match="can't be read"):
        read_perf_map(tmp_path / "perf-8.map")


def test_a_process_that_made_nothing_yet_has_an_empty_map(tmp_path: Path) -> None:
    path = tmp_path / "perf-7.map"
    path.write_bytes(b"")
    assert read_perf_map(path) == ([], 0)
