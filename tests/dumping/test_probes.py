"""Pseudo probes as text, from the command line; that they are right is tested with `program`."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.recordings import PIE

from lbr2pgo.cli import main


@pytest.fixture
def probed(corpus) -> Path:
    path: Path = corpus("llvm-profgen/recursion-compression-pseudoprobe.perfbin")
    return path


def test_functions_stand_first_and_then_every_address(probed: Path, capsys) -> None:
    assert main(["dump", "probes", "--binary", str(probed)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "foo: GUID 6699318081062747564, checksum 563022115997000"
    assert sum("checksum" in line for line in lines) == 4
    at = lines.index("0x2017a4 <fb+0x4>")
    assert lines[at + 1] == "    fb:1, block"
    assert "    fb:5, direct call" in lines


def test_of_a_function_only_its_own_are_shown(probed: Path, capsys) -> None:
    assert main(["dump", "probes", "--binary", str(probed), "--function", "fa"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line.startswith("    fa:") or " <fa+0x" in line for line in lines)


def test_a_program_without_probes_is_told_how_to_get_them(capsys) -> None:
    assert main(["dump", "probes", "--binary", str(PIE)]) == 2
    assert "clang -fpseudo-probe-for-profiling" in capsys.readouterr().err
