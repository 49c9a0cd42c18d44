"""Where a start-up ends, in the program of a command."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from builders.fixtures import Run, Tool
from builders.recordings import PIE

from lbr2pgo.api.start_end import start_end
from lbr2pgo.program.program import Program
from lbr2pgo.support.errors import InputError


def test_a_function_by_its_name_and_by_an_address_inside(tmp_path: Path) -> None:
    address = Program.open(PIE).address_of("run")
    assert address is not None
    link = tmp_path / "link"
    link.symlink_to(PIE)
    for name in ("run", f"{int(address) + 1:#x}"):
        found = start_end(name, [str(link), "word"])
        assert found is not None
        assert (found.function, found.program, found.address) == (name, PIE.resolve(), address)


def test_without_a_command_nothing_starts() -> None:
    assert start_end("run", ()) is None


def test_near_matches_are_told() -> None:
    with pytest.raises(InputError, match="no function is called next_tokens") as raised:
        start_end("next_tokens", [str(PIE)])
    assert "next_token" in str(raised.value.cure)


def test_a_stripped_program_tells_no_places(tmp_path: Path, tool: Tool, run: Run) -> None:
    program = tmp_path / "p"
    shutil.copy(PIE, program)
    run(tool("strip"), program)
    with pytest.raises(InputError, match="stripped program"):
        start_end("run", [str(program)])
