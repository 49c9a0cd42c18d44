from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from builders.binary_walks import walked
from builders.recordings import NAMES, PIE, TESTBINS, binary

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.bolt.fdata import fdata_text
from lbr2pgo.profiles.bolt.fdata.written import of_fdata
from lbr2pgo.profiles.llvm import stale_samples
from lbr2pgo.profiles.llvm import text as llvm_text
from lbr2pgo.profiles.registry import output
from lbr2pgo.profiles.staleness import Changed, Misfit, Staleness, staleness
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_fresh_profile_is_stale(name, written):
    program = Program.open(binary(name))
    samples, branches = written(name)
    debug = DebugInfo.open(program.image)
    found = stale_samples.of_sample_profile(llvm_text.read(samples), program, debug)
    assert (found.share, found.missing) == (0, ())
    assert of_fdata(fdata_text.read(branches), program).share == 0


def test_names_and_places_that_are_gone_are_stale(written):
    program = Program.open(binary("interp.pie"))
    debug = DebugInfo.open(program.image)
    text = b"main:90:0\n 60000: 30\nrenamed\x1b:60:0\n 1: 50\n 2: 20\n"
    found = stale_samples.of_sample_profile(
        llvm_text.parse(text.splitlines(), "text"), program, debug
    )
    assert found.share == 1
    assert found.functions == pytest.approx(0.7)
    assert found.missing == ("renamed\x1b",)
    _, branches = written("shapes.pie")
    gone = of_fdata(fdata_text.read(branches), program)
    assert gone.share > 0.9
    assert gone.missing


def test_functions_in_which_a_branch_does_not_fit_are_left_alone(written, tmp_path):
    """It goes into an instruction, or behind the function; other functions keep theirs."""
    program = Program.open(binary("interp.pie"))
    main = program.functions.by_name("main")
    start, end = int(program.functions.start[main]), int(program.functions.end[main])
    table = program.instructions_for(np.array([start], np.uint64))
    inside = next(a for a, n in zip(table.address.tolist(), table.size, strict=True)
                  if n > 1 and a > start) - start + 1  # fmt: skip
    shifted = tmp_path / "shifted"
    shifted.write_text(
        f"1 main 0 1 main {inside:x} 0 5\n"
        f"1 main {end - start + 64:x} 1 [gone] 0 0 5\n"
        "0 [unknown] 0 1 main 0 0 9\n"
        "0 [unknown] 0 1 _start 0 0 9\n"
    )
    found = of_fdata(fdata_text.read(shifted), program)
    assert found.share == pytest.approx(15 / 38)  # the ends outside of all symbols aside
    assert found.alone == pytest.approx(1 - 9 / 38)
    assert found.functions == pytest.approx(5 / 38)


def test_perf2bolt_s_own_fdata_fits(corpus):
    """Three of its rows lead from an instruction to itself, which llvm-bolt passes over."""
    found = of_fdata(
        fdata_text.read(corpus("sqlite/sq.perf2bolt-22.fdata.zst")),
        Program.open(corpus("sqlite/sq.zst")),
    )
    assert (found.share, found.alone) == (0, 0)


@pytest.mark.parametrize(("level", "least"), [("-O2", 0.0), ("-O1", 0.4)])
def test_fdata_of_another_build_is_stale_where_bolt_finds_it_so(tool, run, tmp_path, level, least):
    """Nearly all offsets of either build are instructions of the other one."""
    bolt, source = tool("llvm-bolt-22"), TESTBINS / "src" / "interp.c"
    common = ("-g1", "-fuse-ld=lld", "-Wl,--emit-relocs,--build-id")
    new, old, fdata = (tmp_path / name for name in ("new", "old", "fdata"))
    for target, how in ((new, "-O2"), (old, level)):
        run(tool("clang-22"), how, *common, source, "-o", target)
    convert(ConvertOptions((walked(tmp_path, old),), old, (output("fdata", fdata),)))
    said = run(bolt, new, "-o", tmp_path / "bolted", "-data", fdata).stderr
    told = re.search(r"\((\S+)%\) belong to functions with invalid", said)
    found = of_fdata(fdata_text.read(fdata), Program.open(new))
    assert least <= found.alone <= float(told.group(1)) / 100


@pytest.mark.parametrize(("offsets", "is_foreign"), [(16, True), (15, False)])
def test_offsets_that_are_all_multiples_of_four_are_of_another_architecture(
    offsets, is_foreign, tmp_path
):
    """Sixteen are no chance; that functions start at 0 tells nothing."""
    lines = [f"0 [unknown] 0 1 main {4 * i:x} 0 1\n" for i in range(offsets + 1)]
    (tmp_path / "fdata").write_text("".join(lines))
    found = of_fdata(fdata_text.read(tmp_path / "fdata"), Program.open(PIE))
    assert found.is_foreign == is_foreign


def test_five_of_the_functions_that_are_missing_are_named_the_heaviest_first():
    found = staleness(100, 10, dict(zip("abcdefg", (1, 2, 3, 9, 3, 5, 4), strict=True)))
    assert found.missing == ("d", "f", "g", "c", "e")


@pytest.mark.parametrize(
    ("functions", "share", "is_foreign", "misfit"),
    [
        (0.5, 0.5, True, None),
        (0.51, 0.51, True, Misfit.PROGRAM),
        (0.5, 0.51, True, Misfit.ARCHITECTURE),
        (0.5, 0.51, False, Misfit.BUILD),
    ],
)
def test_more_than_half_is_too_much(functions, share, is_foreign, misfit):
    assert Staleness(share, functions, is_foreign=is_foreign).misfit() is misfit


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (2 << 48 | 5, 2 << 48 | 1 << 47 | 5, "other branches, 2 calls"),
        (0xFFF << 48 | 5, 1 << 60 | 5, "the same branches, 4095 calls, now 0"),
    ],
)
def test_a_checksum_holds_branches_and_calls(old, new, why):
    assert Changed("f", 0.1, old, new).why() == why


PROBED = ("-O2", "-g", "-fpseudo-probe-for-profiling", "-fno-unique-internal-linkage-names")


EDITS = (
    ("    if (depth == 0", "    if (seed == 77) return 5;\n    if (depth == 0"),
    ("    emit(p, OP_RETURN);", "    emit(p, OP_RETURN); next_token(&s);"),
    ("binding_strength", "strength_of"),
)


@pytest.fixture(scope="module")
def builds(tmp_path_factory, tool, run):
    """A program, an edited one, and a probe profile of the first."""
    folder = tmp_path_factory.mktemp("builds")
    source = (TESTBINS / "src" / "interp.c").read_text()
    (folder / "old.c").write_text(source)
    for before, after in EDITS:
        assert before in source
        source = source.replace(before, after)
    (folder / "new.c").write_text(source)
    for name in ("old", "new"):
        run(tool("clang-22"), *PROBED, folder / f"{name}.c", "-o", folder / name)
    recording = walked(folder, folder / "old")
    profile = output("llvm", folder / "prof")
    convert(ConvertOptions((recording,), folder / "old", outputs=(profile,)))
    return folder


def test_functions_whose_probes_changed_are_those_that_clang_drops(builds, tool, run) -> None:
    profile = llvm_text.read(builds / "prof")
    found = stale_samples.of_probes(profile, Program.open(builds / "new").probes.descriptors)
    done = run(
        tool("clang-22"), *PROBED, f"-fprofile-sample-use={builds / 'prof'}", "-mllvm",
        "-report-profile-staleness", "-c", builds / "new.c", "-o", builds / "new.o",
    )  # fmt: skip
    dropped = re.search(r"\((\d+)/(\d+)\) of samples are discarded due to func", done.stderr)
    matched = re.search(r"\((\d+)/\d+\) of samples are reused by call graph", done.stderr)
    total = int(dropped[2])
    assert total == sum(function.total for function in profile.functions.values())
    assert found.functions * total == pytest.approx(int(matched[1]))
    assert (found.share - found.functions) * total == pytest.approx(int(dropped[1]))
    assert {each.function for each in found.changed} == {"walk", "compile_loop"}
    whys = {each.function: each.why() for each in found.changed}
    assert whys["walk"] == "other branches, 2 calls"
    assert whys["compile_loop"] == "the same branches, 30 calls, now 31"
    assert found.missing == ("binding_strength",)


def test_a_probe_profile_fits_the_build_that_was_recorded(builds) -> None:
    profile = llvm_text.read(builds / "prof")
    found = stale_samples.of_probes(profile, Program.open(builds / "old").probes.descriptors)
    assert found == Staleness(0.0, 0.0)


def test_any_checksum_fits_a_name_that_several_functions_have(builds) -> None:
    profile = llvm_text.read(builds / "prof")
    descriptors = Program.open(builds / "new").probes.descriptors
    unsure = replace(descriptors, is_ambiguous=np.ones(len(descriptors), np.bool_))
    found = stale_samples.of_probes(profile, unsure)
    assert not found.changed
    assert found.share == pytest.approx(found.functions)
    assert found.functions > 0
