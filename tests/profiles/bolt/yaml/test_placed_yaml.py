"""BOLT's YAML placed in its program, against the fdata that llvm-bolt made it of."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.bolt import lines_of
from builders.fixtures import Tool
from builders.outputs import outputs
from builders.recordings import TESTBINS

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.bolt.fdata import fdata_text
from lbr2pgo.profiles.bolt.fdata.written import of_fdata
from lbr2pgo.profiles.bolt.yaml import yaml_text
from lbr2pgo.profiles.bolt.yaml.placed_yaml import fdata_of_yaml
from lbr2pgo.program.program import Program


@pytest.mark.parametrize("name", ["interp.pie", "shapes.pie"])
def test_rows_are_those_that_the_yaml_was_made_of(name: str, tool: Tool, tmp_path: Path) -> None:
    """All but what BOLT leaves out of its YAML: jumps through tables that it does not know,
    returns to blocks, and calls of other images, whose numbers are its own."""
    tool("llvm-bolt-22")
    binary = TESTBINS / "x86-64" / name
    yaml, plain = tmp_path / "yaml", tmp_path / "fdata"
    recording = TESTBINS / "recordings" / f"x86-64-{name}.perf.data"
    convert(ConvertOptions((recording,), binary, outputs=outputs(bolt_yaml=yaml, fdata=plain)))
    placed = fdata_of_yaml(yaml_text.read(yaml), Program.open(binary))
    found = {line.partition(" ")[2] for line in lines_of(placed)}
    theirs = {line.partition(" ")[2] for line in lines_of(fdata_text.read(plain))}
    assert len(found) > 60
    assert {_without_kinds(line) for line in found} <= {_without_kinds(line) for line in theirs}


def _without_kinds(line: str) -> tuple[str, ...]:
    name, offset, _, *rest = line.split(" ")
    return (name, offset, *rest)


def test_a_function_with_other_blocks_has_no_place_for_its_counts(
    tool: Tool, tmp_path: Path
) -> None:
    tool("llvm-bolt-22")
    binary, yaml = TESTBINS / "x86-64" / "interp.pie", tmp_path / "yaml"
    recording = TESTBINS / "recordings" / "x86-64-interp.pie.perf.data"
    convert(ConvertOptions((recording,), binary, outputs=outputs(bolt_yaml=yaml)))
    program = Program.open(binary)
    assert of_fdata(fdata_of_yaml(yaml_text.read(yaml), program), program).share == 0
    text = yaml.read_text().replace("nblocks:         16", "nblocks:         15")
    yaml.write_text(text.replace("name:            'walk/1'", "name:            'strolls/1'"))
    stale = of_fdata(fdata_of_yaml(yaml_text.read(yaml), program), program)
    assert 0 < stale.functions < stale.share < 1
    assert stale.missing == ("strolls/1",)
