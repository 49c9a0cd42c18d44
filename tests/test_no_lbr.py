"""Profiles of instruction samples beside those of branch stacks of the same run, format by format.

Samples are as many as each instruction ran, so what differs is what they can't tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.binary_walks import BinaryWalk
from builders.fixtures import Compiled, Run, Tool
from builders.instruction_samples import preaggregated
from builders.recordings import TESTBINS

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.propeller.block_flow import block_flow
from lbr2pgo.profiles.reader import WrittenProfile, overlap
from lbr2pgo.profiles.registry import output, read_written
from lbr2pgo.program.block_map import open_block_map
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.from_instructions import UNIT

SOURCE = TESTBINS / "src" / "shapes.cpp"
FLAGS = ("-O2", "-g", "-fpseudo-probe-for-profiling", "-fbasic-block-address-map", "-fuse-ld=lld")
FORMATS = ("llvm", "fdata", "afdo", "propeller")
CALLS_AT_ENDS = """
volatile int sum;
__attribute__((noinline)) void g(int n) { sum += n; }
__attribute__((noinline)) int f(int n) {
    if (n % 3) g(n);
    if (sum & 1) g(2);
    return sum + n;
}
int main(void) { for (int i = 0; i < 1000; i++) f(i); return 0; }
"""
Written = Callable[[str], tuple[Path, Path]]


@pytest.fixture(scope="module")
def written(compiled: Compiled, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """`written("afdo")`: that profile of branch stacks, and of instruction samples."""
    program = compiled("clang++-22", SOURCE.read_text(), *FLAGS)
    folder = tmp_path_factory.mktemp("no_lbr")
    stacks, samples = folder / "stacks.txt", folder / "samples.preagg"
    stacks.write_text(BinaryWalk(program, 1).perf_script(walks=60))

    def outputs(of: Path) -> ConvertOptions:
        made = tuple(output(name, of.with_suffix(f".{name}")) for name in FORMATS)
        return ConvertOptions((of,), program, made, no_lbr=of is samples)

    flow = convert(outputs(stacks)).flow
    ran = flow.executed > 0
    samples.write_text(preaggregated(flow.instructions.address[ran], flow.executed[ran]))
    convert(outputs(samples))
    return lambda name: (stacks.with_suffix(f".{name}"), samples.with_suffix(f".{name}"))


def read(path: Path) -> WrittenProfile[Any]:
    found = read_written(path)
    assert found is not None
    return found


# fdata names where calls through pointers and returns lead, which samples don't tell.
@pytest.mark.parametrize(("name", "least"), [("llvm", 0.95), ("afdo", 0.95), ("fdata", 0.8)])
def test_samples_make_nearly_the_profile_that_stacks_make(
    written: Written, name: str, least: float
) -> None:
    found = overlap(*(read(path) for path in written(name)))
    assert found is not None
    assert found.similarity > least


def test_blocks_that_end_in_a_call_lead_on_as_often(compiled: Compiled, tmp_path: Path) -> None:
    """Nothing else leads there in a flow: no run crosses a call, and no return is told."""
    flags = ("-O1", "-fbasic-block-address-map", "-fuse-ld=lld")
    program = compiled("clang-22", CALLS_AT_ENDS, *flags)
    stacks, samples = tmp_path / "stacks.txt", tmp_path / "samples.preagg"
    stacks.write_text(BinaryWalk(program, 1, only="f").perf_script(walks=60))
    whole = ConvertOptions((stacks,), program, correct_runs=True)
    flow = convert(whole).flow
    samples.write_text(preaggregated(flow.instructions.address, flow.executed))
    found = []
    for options in (whole, ConvertOptions((samples,), program, no_lbr=True)):
        path = tmp_path / "fdata"
        done = convert(replace(options, outputs=(output("fdata", path),)))
        blocks = open_block_map(Program.open(program).image)
        edges = block_flow(done.flow, blocks).edges
        lines = (line.split() for line in path.read_text().splitlines())
        found.append((
            {(row[2], row[5]): int(row[7]) for row in lines if row[1] == row[4] == "f"},
            dict(zip(zip(edges.source, edges.target, strict=True), edges.count, strict=True)),
        ))  # fmt: skip
    for stacked, sampled in zip(*found, strict=True):
        assert len(stacked) >= 6
        for edge, count in stacked.items():
            assert sampled[edge] / UNIT == pytest.approx(count, rel=0.15)


def test_perf2bolt_makes_the_same_of_the_traces(
    compiled: Compiled, tool: Tool, run: Run, tmp_path: Path
) -> None:
    program = compiled("clang-22", CALLS_AT_ENDS, "-O1", "-Wl,-q")
    code = Program.open(program).branches
    samples, ours, theirs = (tmp_path / name for name in ("samples.preagg", "ours", "theirs"))
    samples.write_text(
        preaggregated(code.address, np.arange(100, 100 + len(code), dtype=np.uint64))
    )
    outputs = output("fdata", ours), output("preaggregated", tmp_path / "traces")
    convert(ConvertOptions((samples,), program, outputs, no_lbr=True))
    run(tool("perf2bolt-22"), program, "-p", tmp_path / "traces", "--pa", "-o", theirs)
    assert sorted(ours.read_text().splitlines()) == sorted(theirs.read_text().splitlines())


def test_that_of_probes_is_one_of_probes(written: Written) -> None:
    for path in written("llvm"):
        found = read(path).content
        assert found.is_probe_based


def test_clang_lays_blocks_out_by_clusters(
    written: Written, tool: Tool, run: Run, tmp_path: Path
) -> None:
    stacks, samples = (read(path).content for path in written("propeller"))
    placed = [{f.names: set(f.blocks) for f in each.functions} for each in (stacks, samples)]
    assert placed[0] == placed[1]
    _, clusters = written("propeller")
    run(tool("clang++-22"), "-O2", "-g", "-c", SOURCE, "-o", tmp_path / "shapes.o",
        "-Werror", f"-fbasic-block-sections=list={clusters}")  # fmt: skip
    sections = run(tool("llvm-readelf-22"), "-SW", tmp_path / "shapes.o").stdout
    assert ".text.split." in sections
