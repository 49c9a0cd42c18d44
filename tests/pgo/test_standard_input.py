"""What a process was given on standard input, in processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lbr2pgo.pgo.standard_input import reading

KEPT = """
import sys
from pathlib import Path
from lbr2pgo.pgo.standard_input import kept_input
kept = kept_input(Path(sys.argv[1]))
print(kept, kept and kept.read_text())
"""


def kept(place: Path, **how: Any) -> str:
    command = [sys.executable, "-c", KEPT, str(place)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **how).stdout


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    place = tmp_path / "work" / "stdin"
    assert kept(place, input="given") == f"{place} given\n"


def test_a_file_stays_where_it_is_and_one_without_a_name_is_copied(tmp_path: Path) -> None:
    file, place = tmp_path / "file", tmp_path / "stdin"
    file.write_text("given")
    with file.open() as stdin:
        assert kept(place, stdin=stdin) == f"{file} given\n"
        assert not place.exists()
        file.unlink()
        assert kept(place, stdin=stdin) == f"{place} given\n"


@pytest.mark.parametrize("silent", ["nothing", "empty pipe", "terminal"])
def test_nothing_is_kept_of_what_gives_nothing(tmp_path: Path, silent: str) -> None:
    shells = {
        "nothing": "<&-", "empty pipe": "< <(:)", "terminal": "< /dev/ptmx",
    }  # fmt: skip
    text = f'"$@" {shells[silent]}'
    command = ["bash", "-c", text, "-", sys.executable, "-c", KEPT, str(tmp_path / "stdin")]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout == "None None\n"
    assert not list(tmp_path.iterdir())


def test_a_pipe_that_stays_silent_and_open_is_left_alone(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    assert kept(tmp_path / "stdin", stdin=reader) == "None None\n"
    os.close(reader)
    os.close(writer)


def test_without_a_file_there_is_nothing_to_read() -> None:
    with reading(None) as stream:
        assert stream.read() == b""
