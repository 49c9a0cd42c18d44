"""Measures of quality, beside what LLVM's tools say of the same profiles."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.binary_walks import walked
from builders.elf import Function
from builders.evidence import program as small_program
from builders.outputs import outputs
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.analyses import quality, sample_quality, staleness
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, aggregate
from lbr2pgo.profiles.bolt import fdata
from lbr2pgo.profiles.formats import output
from lbr2pgo.profiles.llvm import text as llvm_text
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import replay

TESTBINS = Path(__file__).parents[2] / "testbins"
NAMES = ("interp.pie", "interp.static", "shapes.pie", "shapes.static")


def binary(name: str) -> Path:
    return TESTBINS / "x86-64" / name


def recording(name: str) -> Path:
    return TESTBINS / "recordings" / f"x86-64-{name}.perf.data"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path]]:
    """Sample profile and fdata of a shipped recording."""
    folder = tmp_path_factory.mktemp("written")

    def write(name: str) -> tuple[Path, Path]:
        samples, branches = folder / f"{name}.prof", folder / f"{name}.fdata"
        if not samples.exists():
            both = outputs(llvm=samples, fdata=branches)
            convert(ConvertOptions((recording(name),), binary(name), outputs=both))
        return samples, branches

    return write


@pytest.mark.parametrize("name", NAMES)
def test_density_is_that_of_llvm_profgen(name, tool, run, written, tmp_path):
    said = run(
        tool("llvm-profgen-22"), "--perfdata", recording(name), "--binary", binary(name),
        "--format", "text", "--output", tmp_path / "out", "--show-density",
    ).stdout  # fmt: skip
    wanted = re.search(r"density >= ([0-9.]+) account for 99.00%", said)
    assert wanted is not None
    found = sample_quality.density(llvm_text.read(written(name)[0]))
    assert f"{found:.1f}" == wanted[1]


profiles = st.dictionaries(
    st.sampled_from("abcdef"),
    st.tuples(
        st.dictionaries(st.integers(0, 6), st.integers(0, 50), min_size=1),
        st.dictionaries(st.integers(0, 3), st.dictionaries(st.integers(0, 3), st.integers(1, 9))),
    ),
    min_size=1,
)


def as_text(content: dict[str, tuple[dict[int, int], dict[int, dict[int, int]]]]) -> bytes:
    lines = []
    for name, (body, inlined) in content.items():
        lines.append(f"{name}:100:1")
        lines += [f" {place}: {count}" for place, count in body.items()]
        for place, inner in inlined.items():
            lines.append(f" {place}: callee:10")
            lines += [f"  {at}: {count}" for at, count in inner.items()]
    return "".join(f"{line}\n" for line in lines).encode()


def test_overlap_is_that_of_llvm_profdata(tool, run, written, tmp_path):
    """Of real profiles, and of random ones that share some functions, places and copies."""
    pairs = [(written(a)[0], written(b)[0]) for a in NAMES[1:] for b in NAMES[2:]]
    drawn: list[bytes] = []

    @given(profiles)
    def draw(content):
        drawn.append(as_text(content))

    draw()
    for number, text in enumerate(drawn[:60]):
        (tmp_path / f"{number}").write_bytes(text)
    pairs += [(tmp_path / f"{i}", tmp_path / f"{i + 1}") for i in range(min(len(drawn), 60) - 1)]
    compared = 0
    for base, test in pairs:
        done = run(tool("llvm-profdata-22"), "overlap", "--sample", base, test, check=False)
        shown = dict(re.findall(r"  (.*?): ([-0-9.]+)%", done.stdout))
        if "Whole program profile similarity" not in shown:
            continue  # one without any samples
        found = sample_quality.compare(llvm_text.read(base), llvm_text.read(test))
        for value, title in (
            (found.similarity, "Whole program profile similarity"),
            (found.samples, "Whole program sample overlap"),
            (found.functions, "Function overlap"),
        ):
            assert value * 100 == pytest.approx(float(shown[title]), abs=6e-4), title
        compared += 1
    assert compared > 20


@given(profiles)
def test_a_profile_is_like_itself_however_long_it_was_recorded(content):
    profile = llvm_text.parse(as_text(content).splitlines(), "drawn")
    longer = SampleProfile()
    longer.merge(profile, weight=7)
    if sum(map(sum, map(sample_quality.counts_of, profile.functions.values()))):
        assert sample_quality.compare(profile, longer).similarity == pytest.approx(1)
    assert sample_quality.density(longer) == pytest.approx(7 * sample_quality.density(profile))
    assert sample_quality.coverage(longer) == sample_quality.coverage(profile)


def test_nothing_is_like_an_empty_profile():
    profile = llvm_text.parse([b"f:6:1", b" 1: 3"], "some")
    empty = SampleProfile()
    assert sample_quality.compare(profile, empty).similarity == 0
    assert sample_quality.compare(empty, empty).similarity == 0
    assert sample_quality.density(empty) == sample_quality.coverage(empty) == 0


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_fresh_profile_is_stale(name, written):
    program = Program.open(binary(name))
    samples, branches = written(name)
    debug = DebugInfo.open(program.image)
    found = staleness.of_sample_profile(llvm_text.read(samples), program, debug)
    assert (found.share, found.missing) == (0, ())
    assert staleness.of_fdata(fdata.read(branches), program).share == 0


def test_names_and_places_that_are_gone_are_stale(written):
    program = Program.open(binary("interp.pie"))
    debug = DebugInfo.open(program.image)
    text = b"main:90:0\n 60000: 30\nrenamed\x1b:60:0\n 1: 50\n 2: 20\n"
    found = staleness.of_sample_profile(llvm_text.parse(text.splitlines(), "text"), program, debug)
    assert found.share == 1
    assert found.functions == pytest.approx(0.7)
    assert found.missing == ("renamed\x1b",)
    _, branches = written("shapes.pie")
    gone = staleness.of_fdata(fdata.read(branches), program)
    assert gone.share > 0.9
    assert gone.missing


def test_an_fdata_offset_inside_an_instruction_is_stale(written, tmp_path):
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
    )
    found = staleness.of_fdata(fdata.read(shifted), program)
    assert found.share == pytest.approx(1 - 14 / 29)  # the ends outside of all symbols aside
    assert found.functions == pytest.approx(5 / 29)


def test_exact_counts_conserve_their_flow():
    """A loop that was entered 3 times and ran 12 times; then one branch of it is lost."""
    program = small_program([Function("loop", 0x1000, 4)], {0x1000: "90", 0x1001: "75fd"})
    begin, end = 0x1000, 0x1001

    def flow(back: int, out: int):
        rows = [
            (0, begin, end, TO | END | BRANCH, 3),
            (end, begin, end, FROM | TO | END | BRANCH, back),
            (end, 0, 0, FROM | BRANCH, out),
        ]
        columns = [np.array(c, np.uint64) for c in zip(*rows, strict=True)]
        counts = aggregate(*columns[:3], columns[3].astype(np.uint8), columns[4], columns[4] * 0)
        return replay(counts, program)

    assert quality.conservation(flow(9, 3)) == 1
    assert quality.conservation(flow(9, 0)) == pytest.approx(9 / 12)


@pytest.mark.parametrize("name", NAMES)
def test_recorded_flow_is_nearly_conserved(name):
    program = Program.open(binary(name))
    done = convert(ConvertOptions((recording(name),), binary(name)))
    found = quality.measure(quality.Profile(flow=done.flow), program)
    assert 0.95 < found.conservation < 1
    assert found.stale.share == 0
    assert found.density is None


def test_gates():
    found = quality.Quality(
        density=10.0, coverage=None, conservation=1.0,
        stale=staleness.Staleness(0.25, 0.1), overlap=None,
    )  # fmt: skip
    assert list(quality.Gates({"density": 10, "stale": 0.25}).failed(found)) == []
    assert list(quality.Gates({"density": 10.1, "stale": 0.2}).failed(found)) == [
        "density",
        "stale",
    ]
    assert list(quality.Gates({"coverage": 0.0, "overlap": 0.0}).failed(found)) == [
        "coverage",
        "overlap",
    ]


# ---------------------------------------------------------------------------- pseudo probes

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
    found = staleness.of_probes(profile, Program.open(builds / "new").probes.descriptors)
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
    found = staleness.of_probes(profile, Program.open(builds / "old").probes.descriptors)
    assert found == staleness.Staleness(0.0, 0.0)


def test_any_checksum_fits_a_name_that_several_functions_have(builds) -> None:
    profile = llvm_text.read(builds / "prof")
    descriptors = Program.open(builds / "new").probes.descriptors
    unsure = replace(descriptors, is_ambiguous=np.ones(len(descriptors), np.bool_))
    found = staleness.of_probes(profile, unsure)
    assert not found.changed
    assert found.share == pytest.approx(found.functions)
    assert found.functions > 0
