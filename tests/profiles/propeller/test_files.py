"""Propeller's files: their text, and what clang, lld and llvm-bolt make of the same counts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from builders.fixtures import Run, Tool, lbr2pgo

from lbr2pgo.profiles.propeller.files import Cluster, write_clusters, write_order
from lbr2pgo.sources.perf_data.reader import PerfData

SOURCES = Path(__file__).parents[3] / "testbins" / "src"
FLAGS = ("-O2", "-g1", "-ffunction-sections", "-fuse-ld=lld", "-Wl,--build-id")
FOUND = [Cluster(("f", "alias"), ("0", "2", "1"), True), Cluster(("g",), ("0",), False)]


def test_version_1_has_a_line_of_names_and_one_of_blocks(tmp_path: Path) -> None:
    write_clusters(FOUND, tmp_path / "cc", 1, ["of the build 12"])
    lines = (tmp_path / "cc").read_text().splitlines()
    assert lines == ["v1", "# of the build 12", "f f alias", "c 0 2 1", "f g", "c 0"]


def test_paths_stand_before_the_blocks(tmp_path: Path) -> None:
    cluster = Cluster(("f",), ("0", "2.1", "2"), True, total=3, paths=("1 2",))
    write_clusters([cluster], tmp_path / "cc", 1)
    lines = (tmp_path / "cc").read_text().splitlines()
    assert lines == ["v1", "f f", "# 3 blocks", "p 1 2", "c 0 2.1 2"]


def test_version_0_has_exclamation_marks(tmp_path: Path) -> None:
    write_clusters(FOUND, tmp_path / "cc", 0)
    assert (tmp_path / "cc").read_text().splitlines() == ["!f/alias", "!!0 2 1", "!g", "!!0"]


def test_a_file_stands_where_a_name_is_not_enough(tmp_path: Path) -> None:
    shared = [Cluster(("f",), ("0",), True, file) for file in ("a.c", "b.c")]
    write_clusters(shared, tmp_path / "cc", 1)
    assert (tmp_path / "cc").read_text().split("\n")[1:4] == ["m a.c", "f f", "c 0"]
    write_clusters(shared, tmp_path / "cc", 0)
    assert (tmp_path / "cc").read_text().split("\n")[:2] == ["!f M=a.c", "!!0"]
    write_order([("f",), ("f",)], [True, True], tmp_path / "ld")
    assert (tmp_path / "ld").read_text().split() == ["f", "f.cold"]


def test_the_linker_gets_hot_parts_before_cold_ones(tmp_path: Path) -> None:
    write_order([each.names for each in FOUND], [True, False], tmp_path / "ld")
    assert (tmp_path / "ld").read_text().split() == ["f", "alias", "g", "f.cold", "alias.cold"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, tool: Tool, run: Run) -> Path:
    """A program with a block map; its recording has the suffix .data, its files .cc and .ld."""
    program = tmp_path_factory.mktemp("propeller") / "interp"
    flags = (*FLAGS, "-Wl,--emit-relocs", "-fbasic-block-address-map")
    run(tool("clang-22"), *flags, SOURCES / "interp.c", "-o", program)
    recording = program.with_suffix(".data")
    run(*lbr2pgo("record", "--emulate", "-c", 10007, "-o", recording, "--", program))
    run(*lbr2pgo("convert", recording, "--binary", program, *words(program)))
    return program


def words(program: Path) -> tuple[object, ...]:
    ends = {"--propeller-cc": ".cc", "--propeller-ld": ".ld", "--fdata": ".fdata"}
    return tuple(w for option, end in ends.items() for w in (option, program.with_suffix(end)))


def rebuilt(program: Path, tool: Tool, run: Run, clusters: Path) -> Path:
    """The program, laid out; the linker's and the compiler's warnings are errors."""
    out = program.with_suffix(".laid")
    order = f"-Wl,--no-warn-symbol-ordering,--symbol-ordering-file={program.with_suffix('.ld')}"
    use = (f"-fbasic-block-sections=list={clusters}", order, "-Wl,--fatal-warnings", "-Werror")
    run(tool("clang-22"), *FLAGS, *use, SOURCES / "interp.c", "-o", out)
    return out


def test_clang_and_lld_put_functions_in_the_order_asked_for(
    recorded: Path, tool: Tool, run: Run
) -> None:
    out = rebuilt(recorded, tool, run, recorded.with_suffix(".cc"))
    said = run(tool("llvm-nm-22"), "-n", out).stdout
    placed = [line.split()[-1] for line in said.splitlines() if len(line.split()) == 3]
    wanted = recorded.with_suffix(".ld").read_text().split()
    assert len(wanted) > 3
    assert [name for name in placed if name in wanted] == wanted
    assert run(out).stdout == run(recorded).stdout


def test_clang_takes_version_0_too(recorded: Path, tool: Tool, run: Run, tmp_path: Path) -> None:
    older = ("--propeller-cc", tmp_path / "cc", "--propeller-version", 0)
    run(*lbr2pgo("convert", recorded.with_suffix(".data"), "--binary", recorded, *older))
    assert (tmp_path / "cc").read_text().startswith("#")
    out = rebuilt(recorded, tool, run, tmp_path / "cc")
    assert run(out).stdout == run(recorded).stdout


def test_clang_takes_counts_and_hashes_of_blocks(
    recorded: Path, tool: Tool, run: Run, tmp_path: Path
) -> None:
    asked = ("--propeller-cc", tmp_path / "cc", "--propeller-counts")
    convert = lbr2pgo("convert", recorded.with_suffix(".data"), "--binary", recorded, *asked)
    run(*convert)
    # Only the oldest branch of a stack, and its newest target, are without a run beside them.
    loose = sum(map(len, PerfData(recorded.with_suffix(".data")).batches()))
    hottest = 0
    for function in (tmp_path / "cc").read_text().split("\nf ")[1:]:
        _, of_all, order, graph, *_ = function.splitlines()
        assert (of_all[:2], order[:2], graph[:2]) == ("# ", "c ", "g ")
        nodes = [node.split(",") for node in graph[2:].split()]
        assert [node[0].split(":")[0] for node in nodes] == order[2:].split()
        for total, *led in nodes:
            ran, left = int(total.split(":")[1]), sum(int(edge.split(":")[1]) for edge in led)
            assert not led or abs(left - ran) <= loose
            hottest = max(hottest, left)
    assert hottest > 3 * loose
    out = rebuilt(recorded, tool, run, tmp_path / "cc")
    plain = rebuilt(recorded, tool, run, recorded.with_suffix(".cc"))
    assert out.read_bytes() == plain.read_bytes()
    done = run(*convert, "--propeller-version", 0, check=False)
    assert "version 0 of Propeller's clusters holds no counts" in done.stderr


@pytest.mark.slow
def test_no_more_branches_are_taken_than_as_bolt_lays_out(
    recorded: Path, tool: Tool, run: Run
) -> None:
    """Two of a hundred more at most; measured: as many, with periods of 1009 and 10007."""
    bolted, laid = (
        recorded.with_suffix(".bolt"),
        rebuilt(recorded, tool, run, recorded.with_suffix(".cc")),
    )
    layout = ("-reorder-blocks=ext-tsp", "-reorder-functions=cdsort", "-split-functions")
    fdata = recorded.with_suffix(".fdata")
    run(tool("llvm-bolt-22"), recorded, "-o", bolted, "-data", fdata, *layout)
    said = run(*lbr2pgo("measure", "--runs", 0, "--format", "json", bolted, laid, "--")).stdout
    taken = json.loads(said)["programs"][1]["ratios"]["taken"]
    assert taken < 1.02


def test_a_map_of_another_build_is_refused(
    recorded: Path, tool: Tool, run: Run, tmp_path: Path
) -> None:
    """Here the map of the program at -O1 replaces its own."""
    other, broken, section = tmp_path / "other", tmp_path / "interp", tmp_path / "map"
    flags = ("-O1", "-fuse-ld=lld", "-fbasic-block-address-map")
    run(tool("clang-22"), *flags, SOURCES / "interp.c", "-o", other)
    objcopy = tool("llvm-objcopy-22")
    run(objcopy, f"--dump-section=.llvm_bb_addr_map={section}", other)
    shutil.copy(recorded, broken)
    run(objcopy, f"--update-section=.llvm_bb_addr_map={section}", broken)
    asked = ("--binary", broken, "--propeller-cc", tmp_path / "cc")
    done = run(*lbr2pgo("convert", recorded.with_suffix(".data"), *asked), check=False)
    assert done.returncode == 2
    assert "the block map is of another build" in done.stderr
    assert "jumps within functions lead to the start of a block" in done.stderr
    assert not (tmp_path / "cc").exists()


def test_a_program_without_a_map_is_told_how_to_get_one(
    recorded: Path, tool: Tool, run: Run, tmp_path: Path
) -> None:
    plain = tmp_path / "interp"
    run(tool("llvm-objcopy-22"), "--remove-section=.llvm_bb_addr_map", recorded, plain)
    asked = ("--binary", plain, "--propeller-ld", tmp_path / "ld")
    done = run(*lbr2pgo("convert", recorded.with_suffix(".data"), *asked), check=False)
    assert done.returncode == 2
    assert "nothing was written for Propeller: the program has no block map" in done.stderr
    assert "-fbasic-block-address-map" in done.stderr
