"""Sample profiles judged by llvm-profgen, whose input can be the same text or file.

Walks through compiled programs stand in for recordings where there are none.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders import llvm_profiles as profiles
from builders.binary_walks import walked
from builders.fixtures import TESTBINS, Corpus, Tool
from builders.hybrid import Hybrid, write_hybrid
from builders.outputs import outputs
from builders.recordings import RECORDED

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model import waterfall
from lbr2pgo.model.waterfall import losses_of
from lbr2pgo.profiles.llvm.discriminators import duplication_factor
from lbr2pgo.profiles.registry import output, steps
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program


def converted(where: Path, profile: Path, binary: Path, **options: bool) -> str:
    """Our text profile of source lines."""
    return profiles.converted(where, profile, binary, probes="off", **options)


def profgen(tool: Tool, where: Path, profile: Path, binary: Path) -> str:
    """llvm-profgen's."""
    return profiles.profgen(tool, where, profile, binary, "--use-dwarf-correlation")


CLANG = "clang-22 -fuse-ld=lld -fdebug-info-for-profiling"
CLANGXX = "clang++-22 -fuse-ld=lld -fdebug-info-for-profiling"
ARM = " --target=aarch64-linux-gnu"
C, TWO, CXX = ("inlining.c",), ("same_names_main.c", "same_names_other.c"), ("templates.cpp",)
BUILDS = {
    "plain": (CLANG + " -O2", *C),
    "unoptimised": (CLANG + " -O0", *C),
    "fixed": (CLANG + " -O2 -fno-pie -no-pie", *C),
    "unrolled": (CLANG + " -O3 -mllvm -unroll-count=4", *C),
    "vectorised": (CLANG + " -O3 -march=x86-64-v3 -gdwarf-4", *C),
    "sections": (CLANG + " -O2 -fbasic-block-sections=all", *C),
    "relocations": (CLANG + " -O2 -gmlt -Wl,--emit-relocs", *C),
    "one-segment": (CLANG + " -O2 -gz=zstd -Wl,--no-rosegment", *C),
    "probes": (CLANG + " -O2 -fpseudo-probe-for-profiling", *C),
    "flow-sensitive": (
        CLANG + " -O2 -flto -mllvm -enable-fs-discriminator=true"
        " -Wl,-mllvm,-enable-fs-discriminator=true", *C,
    ),
    "split-debug": (CLANG + " -O2 -gsplit-dwarf", *C),
    "same-names": (CLANG + " -O2", *TWO),
    "link-time": (CLANG + " -O2 -flto=thin", *TWO),
    "gcc": ("gcc -O2", *C),
    "gcc-link-time": ("gcc -O2 -flto", *TWO),
    "templates": (CLANGXX + " -O2", *CXX),
    "templates-unoptimised": (CLANGXX + " -O0", *CXX),
    "cold-split": (CLANGXX + " -O2 -mllvm -hot-cold-split", *CXX),
    "unique-names": (CLANGXX + " -O2 -funique-internal-linkage-names", *CXX),
    "g++": ("g++ -O2", *CXX),
    "arm": (CLANG + ARM + " -O2", *C),
    "arm-guarded": (CLANG + ARM + " -O2 -mbranch-protection=standard -no-pie -fno-pie", *C),
    "arm-templates": (CLANGXX + ARM + " -O2", *CXX),
}  # fmt: skip


@pytest.mark.parametrize("build", BUILDS)
def test_walks_make_the_profile_of_llvm_profgen(
    build: str, built: Callable[..., Path], tool: Tool, tmp_path: Path
) -> None:
    binary = built(*BUILDS[build])
    recording = walked(tmp_path, binary)
    expected = profgen(tool, tmp_path, recording, binary)
    assert expected.count("\n") > 10
    assert converted(tmp_path, recording, binary) == expected


def test_the_programs_have_what_they_are_for(built: Callable[..., Path], tmp_path: Path) -> None:
    """Copies by unrolling, nested inlining, discriminators, functions in several ranges."""
    unrolled = Program.open(built(*BUILDS["unrolled"]))
    everything = unrolled.instructions_for(unrolled.functions.start).address
    words = DebugInfo.open(unrolled.image).frames(everything).discriminator
    assert duplication_factor(words).max() >= 4
    binary = built(*BUILDS["plain"])
    lines = converted(tmp_path, walked(tmp_path, binary), binary).splitlines()
    assert any(line.startswith("   ") for line in lines), "inlined twice"
    assert sum("." in line.split(":")[0] for line in lines) > 10, "discriminators"
    sections = Program.open(built(*BUILDS["sections"]))
    functions = DebugInfo.open(sections.image).functions()
    assert len(functions.range_start) > 2 * len(functions.names)


@pytest.mark.parametrize("build", ["plain", "templates", "arm"])
def test_damaged_stacks_are_judged_like_llvm_profgen_on_demand(
    build: str, built: Callable[..., Path], tool: Tool, tmp_path: Path
) -> None:
    """Entries lost on the way join lines that never ran; half entries join nothing; and some
    addresses are not those of branches."""
    binary = built(*BUILDS[build])
    recording = walked(tmp_path, binary, seed=2)
    rng = random.Random(3)
    lines = [_damaged(line, rng) for line in recording.read_text().splitlines()]
    recording.write_text("\n".join(lines) + "\n")
    expected = profgen(tool, tmp_path, recording, binary)
    assert converted(tmp_path, recording, binary, compat=True) == expected


def _damaged(line: str, rng: random.Random) -> str:
    if line.startswith("PERF_RECORD"):
        return line
    ip, *entries = line.split()
    kept = []
    for entry in entries:
        source, target, flags = entry.split("/", 2)
        chance = rng.random()
        if chance < 0.04:
            continue
        if chance < 0.05:
            source = "0x0"
        elif chance < 0.06:
            target = "0x0"
        elif chance < 0.08:
            source = hex(int(source, 16) - rng.choice([1, 2, 3, 4, 7]))
        elif chance < 0.1:
            target = hex(int(target, 16) + rng.choice([1, 2, 3, 4, 7]))
        kept.append(f"{source}/{target}/{flags}")
    return f" {ip}  " + "  ".join(kept)


@pytest.mark.parametrize("empty", ["0x0/0x0", "0xffffffff81000000/0xffffffff81000010"])
def test_nothing_is_inferred_across_an_entry_that_tells_nothing(
    empty: str, built: Callable[..., Path], tool: Tool, tmp_path: Path
) -> None:
    """It parts a stack in two; llvm-profgen joins what stood around it, see docs."""
    binary = built(*BUILDS["plain"])
    recording = walked(tmp_path, binary)
    lines = recording.read_text().splitlines()
    middle = f"{empty}/P/-/-/0"
    recording.write_text("".join(_with_middle(line, middle) for line in lines))
    parted = tmp_path / "parted.perfscript"
    parted.write_text("".join(_with_middle(line, None) for line in lines))
    expected = profgen(tool, tmp_path, parted, binary)
    assert converted(tmp_path, recording, binary) == converted(tmp_path, parted, binary) == expected
    joined = profgen(tool, tmp_path, recording, binary)
    assert joined != expected
    assert converted(tmp_path, recording, binary, compat=True) == joined


def _with_middle(line: str, entry: str | None) -> str:
    """A sample with its middle entry replaced, or parted in two samples there."""
    if line.startswith("PERF_RECORD"):
        return line + "\n"
    ip, *entries = line.split()
    half = len(entries) // 2
    if entry is not None:
        entries[half] = entry
        return f" {ip}  " + "  ".join(entries) + "\n"
    halves = (entries[:half], entries[half + 1 :])
    return "".join(f" {ip}  " + "  ".join(part) + "\n" for part in halves)


def test_flags_and_copies_count_for_nothing_on_demand(
    built: Callable[..., Path], tool: Tool, tmp_path: Path
) -> None:
    """Wrong paths, aborts, exceptions and copies of the newest entry: all branches to profgen."""
    binary = built(*BUILDS["plain"])
    recording = walked(tmp_path, binary)
    rng = random.Random(5)
    marks = ("P/-/-/0/COND/SPEC_WRONG_PATH", "P/X/A/0", "P/-/-/0/IRQ/-", "M/-/-/0/ERET/-")
    lines = []
    for line in recording.read_text().splitlines():
        ip, *entries = line.split()
        if not line.startswith("PERF_RECORD"):
            entries = [e.replace("P/-/-/0", rng.choice([*marks, "P/-/-/0"])) for e in entries]
            entries.insert(0, entries[0])
            line = f" {ip}  " + "  ".join(entries)
        lines.append(line + "\n")
    recording.write_text("".join(lines))
    expected = profgen(tool, tmp_path, recording, binary)
    assert converted(tmp_path, recording, binary, compat=True) == expected
    assert converted(tmp_path, recording, binary) != expected


def test_folded_code_gets_calls_from_outside_on_demand(
    built: Callable[..., Path], tool: Tool, tmp_path: Path
) -> None:
    """The linker left the debug information of a folded function at address 0, see docs."""
    binary = built(CLANGXX + " -O2 -ffunction-sections -Wl,--icf=all", *CXX)
    recording = walked(tmp_path, binary)
    expected = profgen(tool, tmp_path, recording, binary)
    assert converted(tmp_path, recording, binary, compat=True) == expected
    ours = converted(tmp_path, recording, binary)
    assert expected.startswith(ours)
    rest = expected.removeprefix(ours).splitlines()
    assert len(rest) == 2, "one function more"
    assert rest[0].endswith(":0:0"), "which never ran"


OVER_LOCK = r"""int x;
int main(void) {
  for (int i = 0; i < 9; i++)
    __asm__ volatile("cmpl $7, %0\n je 1f\n .byte 0xf0\n 1: incl %0" : "+m"(x) : : "cc");
  return 0;
}
"""


def test_a_jump_over_a_lock_prefix_leads_into_an_instruction(tool: Tool, tmp_path: Path) -> None:
    """llvm-profgen takes the prefix for an instruction."""
    source, binary = tmp_path / "lock.c", tmp_path / "lock"
    source.write_text(OVER_LOCK)
    command = [tool("clang-22"), "-O1", "-g", "-no-pie", source, "-o", binary]
    subprocess.run(command, check=True)
    program = Program.open(binary)
    start = program.symbols.start[[program.symbols.names.index("main")]]
    code = program.instructions_for(start)
    rows = np.flatnonzero(code.has_target & (code.kind == Kind.COND) & (code.address >= start))
    over, back = rows[code.index_of(code.target[rows]) < 0][0], rows[-1]
    entries = [(int(code.address[row]), int(code.target[row])) for row in (back, over)] * 2
    recording = tmp_path / "lock.perfscript"
    recording.write_text(write_hybrid([Hybrid([], entries)]))
    made = (output("llvm", tmp_path / "ours", contexts="off"),)
    done = convert(ConvertOptions((recording,), binary, outputs=made))
    assert losses_of(done.tallies, "runs_valid") == {"not_an_instruction": 2}
    assert (tmp_path / "ours").read_text() != profgen(tool, tmp_path, recording, binary)


@pytest.mark.parametrize(("machine", "name"), RECORDED)
def test_recordings_of_the_test_programs(
    machine: str, name: str, tool: Tool, tmp_path: Path
) -> None:
    recording = TESTBINS / "recordings" / f"{machine}-{name}.perf.data"
    binary = TESTBINS / machine / name
    expected = profgen(tool, tmp_path, recording, binary)
    assert expected.count("\n") > 30
    assert converted(tmp_path, recording, binary) == expected


WITH_AGGREGATED = (*profiles.CASES, "noprobe.agg")


def llvm_case(corpus: Corpus, name: str) -> tuple[Path, Path]:
    case = name.removesuffix(".agg")
    script = case + (".aggperfscript" if "agg" in name else ".perfscript")
    return corpus(f"llvm-profgen/{script}"), profiles.binary_of(corpus, case)


@pytest.mark.parametrize("name", WITH_AGGREGATED)
def test_the_cases_of_llvm(name: str, corpus: Corpus, tmp_path: Path) -> None:
    recording, binary = llvm_case(corpus, name)
    expected = corpus(f"llvm-profgen/{name}.expected.prof").read_text()
    assert converted(tmp_path, recording, binary, compat=True) == expected
    assert (converted(tmp_path, recording, binary) == expected) == (name not in profiles.DIFFERENT)


def cut_down(script: str) -> str:
    """The script with nothing but FROM/TO in each entry, and a count before each call stack."""
    bare = re.sub(r"(0x[0-9a-f]+/0x[0-9a-f]+)/\S+", r"\1", script)
    return re.sub(r"(?<=\n)\n(?=[ \t]+[0-9a-f]+\n)", "\n7\n", bare)


AGGREGATED_HYBRIDS = ("multi-load-segs", "noinline-cs-pseudoprobe", "recursion-compression-noprobe")


@pytest.mark.parametrize("name", WITH_AGGREGATED)
def test_entries_of_two_fields_read_as_llvm_profgen_reads_them(
    name: str, corpus: Corpus, tool: Tool, tmp_path: Path
) -> None:
    script, binary = llvm_case(corpus, name)
    recording = tmp_path / "bare.perfscript"
    recording.write_text(cut_down(script.read_text()))
    assert ("\n7\n" in recording.read_text()) or name not in AGGREGATED_HYBRIDS
    expected = profgen(tool, tmp_path, recording, binary)
    assert expected
    assert converted(tmp_path, recording, binary, compat=True) == expected


def test_the_oldest_perf_data(corpus: Corpus, tmp_path: Path) -> None:
    text = converted(tmp_path, corpus("autofdo/test.lbr.zst"), corpus("autofdo/test.binary"))
    assert text == corpus("autofdo/test.llvm-profgen-22.prof").read_text()


@pytest.mark.slow
def test_sqlite(corpus: Corpus, tmp_path: Path) -> None:
    text = converted(tmp_path, corpus("sqlite/sq.perf.data.zst"), corpus("sqlite/sq.zst"))
    assert text == corpus("sqlite/sq.llvm-profgen-22.prof.zst").read_text()


def test_a_binary_known_by_its_build_id_alone(corpus: Corpus, tmp_path: Path) -> None:
    """Recorded under another path; llvm-profgen and perf2bolt refuse it."""
    recording = corpus("autofdo/propeller_sample_1.perfdata1.zst")
    binary = corpus("autofdo/propeller_sample_1.bin")
    options = ConvertOptions((recording,), binary, outputs=outputs(fdata=tmp_path / "x.fdata"))
    done = convert(options)
    waterfall.check(done.tallies, steps())
    assert len((tmp_path / "x.fdata").read_text().splitlines()) > 3
    assert done.tallies["runs_valid"] > 0.9 * done.tallies["runs_in_image"] > 0


@pytest.mark.parametrize("form", ["text", "extbinary"])
def test_clang_takes_the_profile_without_a_word_and_weighs_its_branches(
    form: str, tool: Tool, tmp_path: Path
) -> None:
    recording = TESTBINS / "recordings" / "x86-64-interp.pie.perf.data"
    binary, source = TESTBINS / "x86-64" / "interp.pie", TESTBINS / "src" / "interp.c"
    lines = converted(tmp_path, recording, binary).splitlines()
    profile = output("llvm", tmp_path / "p", form=form)
    convert(ConvertOptions((recording,), binary, outputs=(profile,)))
    done = subprocess.run(
        [tool("clang-22"), "-O2", "-g", "-fdebug-info-for-profiling", "-Wall", "-S", "-emit-llvm",
         f"-fprofile-sample-use={tmp_path}/p", "-Rpass=sample-profile",
         "-Rpass-analysis=sample-profile", source, "-o", tmp_path / "out.ll"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    applied = re.findall(r"Applied (\d+) samples from profile \(offset: ([\d.]+)\)", done.stderr)
    assert len(applied) > 30
    ours = {(count, at) for at, count in re.findall(r"^ +([\d.]+): (\d+)", "\n".join(lines), re.M)}
    assert set(applied) <= ours, "clang read the counts that we wrote"
    walk = re.search(r"^define [^\n]*@walk\(.*?^}", (tmp_path / "out.ll").read_text(), re.M | re.S)
    assert walk is not None
    known = re.search(r"br i1 .*!prof (!\d+)", walk[0])
    assert known is not None
    weights = re.search(rf"^{known[1]} = (.*)", (tmp_path / "out.ll").read_text(), re.M)
    assert weights is not None
    assert "branch_weights" in weights[1]


@pytest.mark.parametrize("name", ["interp.pie", "interp.static", "shapes.pie", "shapes.static"])
def test_bolt_finds_the_profile_of_every_function(name: str, tool: Tool, tmp_path: Path) -> None:
    recording = TESTBINS / "recordings" / f"x86-64-{name}.perf.data"
    fdata = tmp_path / "x.fdata"
    binary = TESTBINS / "x86-64" / name
    convert(ConvertOptions((recording,), binary, outputs=outputs(fdata=fdata)))
    command = [tool("llvm-bolt-22"), binary, "-o", tmp_path / "bolted", f"-data={fdata}"]
    done = subprocess.run([*command, "-reorder-blocks=ext-tsp"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    used = re.search(r"(\d+) out of \d+ functions in the binary .* non-empty", said)
    unused = re.search(r"(\d+) functions? with profile could not be optimized", said)
    assert used is not None, said
    named = {line.split(" ")[1] for line in fdata.read_text().splitlines() if line[0] == "1"}
    assert int(used[1]) + (int(unused[1]) if unused else 0) >= len(named) > 3, said
    assert not re.search("invalid|mismatch|stale", said), said
