"""Profiles of pseudo probes judged by llvm-profgen, whose input can be the same text or file."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders.binary_walks import BinaryWalk, walked
from builders.fixtures import ROOT, Corpus, Tool
from builders.hybrid import Hybrid, write_hybrid
from builders.llvm_profiles import converted, profgen

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model import waterfall
from lbr2pgo.model.incomplete import EmptyProfileError, IncompleteError
from lbr2pgo.profiles.llvm import extbinary
from lbr2pgo.profiles.llvm import text as llvm_text
from lbr2pgo.profiles.llvm.probe_profile import is_probed
from lbr2pgo.profiles.registry import output, steps
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.dwarf.debug_info import DwarfFunctions
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import image_array

Built = Callable[..., Path]

C = ROOT / "testbins/src/interp.c"
CXX = ROOT / "testbins/src/shapes.cpp"
TWO = ("same_names_main.c", "same_names_other.c")
CLANG = "clang-22 -fuse-ld=lld -fpseudo-probe-for-profiling"
CLANGXX = "clang++-22 -fuse-ld=lld -fpseudo-probe-for-profiling"
FOLDED = CLANGXX + " -O2 -ffunction-sections -Wl,--icf=all"
SAME_NAMES = CLANG + " -O1 -fno-unique-internal-linkage-names"
BUILDS = {
    "plain": (CLANG + " -O2", C),
    "unoptimised": (CLANG + " -O0", C),
    "unrolled": (CLANG + " -O3 -mllvm -unroll-count=4", C),
    "relocations": (CLANGXX + " -O2 -Wl,--emit-relocs", CXX),
    "static": (CLANGXX + " -O2 -static", CXX),
    "without-dwarf": (CLANG + " -O2 -g0", C),
    "c++": (CLANGXX + " -O2", CXX),
    "c++-unoptimised": (CLANGXX + " -O0", CXX),
    "c++-without-dwarf": (CLANGXX + " -O2 -g0", CXX),
    "templates": (CLANGXX + " -O3", "templates.cpp"),
    "coroutine": (CLANGXX + " -O2 -std=c++20", "coroutine.cpp"),
    "link-time": (CLANG + " -O2 -flto=thin", *TWO),
    "unique-names": (CLANG + " -O2", *TWO),
    "arm": (CLANG + " -O2 --target=aarch64-linux-gnu", C),
    "riscv64": (CLANG + " -O2 --target=riscv64-linux-gnu -mno-relax", C),
}


@pytest.mark.parametrize("build", BUILDS)
def test_walks_make_the_profile_of_llvm_profgen(
    build: str, built: Built, tool: Tool, tmp_path: Path
) -> None:
    binary = built(*BUILDS[build])
    recording = walked(tmp_path, binary, only=".__uniq" if build == "static" else None)
    expected = profgen(tool, tmp_path, recording, binary)
    assert expected.count("!CFGChecksum") >= 5
    assert converted(tmp_path, recording, binary, compat=True) == expected
    if build not in (*FORGETFUL, *CALLS_UNKNOWN):
        assert converted(tmp_path, recording, binary) == expected


CALLS_UNKNOWN = ("arm", "riscv64")
FORGETFUL = ("without-dwarf", "c++-without-dwarf", "coroutine")


@pytest.mark.parametrize("build", FORGETFUL[1:])
def test_nothing_inlined_is_lost_where_the_compiler_forgot_into_what(
    build: str, built: Built, tool: Tool, tmp_path: Path
) -> None:
    """Without debug information llvm-profgen takes such code only of functions that ran apart."""
    binary = built(*BUILDS[build])
    recording = walked(tmp_path, binary)
    theirs = read(tmp_path, profgen(tool, tmp_path, recording, binary))
    ours = read(tmp_path, converted(tmp_path, recording, binary))
    assert theirs.functions.keys() < ours.functions.keys()
    for name, function in theirs.functions.items():
        assert ours.functions[name] == function


def read(where: Path, text: str):
    path = where / "read.prof"
    path.write_text(text)
    return llvm_text.read(path)


@pytest.mark.parametrize("flags", ["", " -g0"])
def test_static_functions_of_one_name_are_told_apart(
    flags: str, built: Built, tool: Tool, tmp_path: Path
) -> None:
    """llvm-profgen has the probes of both in the last one of them."""
    binary = built(SAME_NAMES + flags, *TWO)
    recording = walked(tmp_path, binary)
    expected = profgen(tool, tmp_path, recording, binary)
    assert converted(tmp_path, recording, binary, compat=True) == expected
    both = read(tmp_path, converted(tmp_path, recording, binary)).functions["leaf"]
    assert both != read(tmp_path, expected).functions["leaf"]
    names = (SAME_NAMES.replace("-fno-unique", "-funique") + flags, *TWO)
    apart = read(tmp_path, converted(tmp_path, recording, built(*names)))
    leaves = [f for name, f in apart.functions.items() if "leaf" in str(name)]
    assert len(leaves) == 2
    assert both.head == sum(leaf.head for leaf in leaves)


@pytest.mark.parametrize("flags", ["", " -g0"])
def test_functions_folded_into_one_are_called_by_the_name_that_has_probes(
    flags: str, built: Built, tool: Tool, tmp_path: Path
) -> None:
    binary = built(FOLDED + flags, CXX)
    recording = walked(tmp_path, binary)
    expected = profgen(tool, tmp_path, recording, binary)
    assert converted(tmp_path, recording, binary, compat=True) == expected


@pytest.mark.parametrize("case", [
    ("noinline-cs-pseudoprobe", "noinline-cs-pseudoprobe"),
    ("recursion-compression-pseudoprobe", "recursion-compression-pseudoprobe"),
    ("invalid-range", "noinline-cs-pseudoprobe"),
], ids=lambda case: case[0])  # fmt: skip
def test_the_cases_of_llvm(
    case: tuple[str, str], corpus: Corpus, tool: Tool, tmp_path: Path
) -> None:
    recording = corpus(f"llvm-profgen/{case[0]}.perfscript")
    binary = corpus(f"llvm-profgen/{case[1]}.perfbin")
    expected = profgen(tool, tmp_path, recording, binary)
    assert "!CFGChecksum" in expected
    assert converted(tmp_path, recording, binary, compat=True) == expected


def test_lines_are_counted_on_demand(built: Built, tool: Tool, tmp_path: Path) -> None:
    binary = built(*BUILDS["plain"])
    recording = walked(tmp_path, binary)
    expected = profgen(tool, tmp_path, recording, binary, "--use-dwarf-correlation")
    assert "!CFGChecksum" not in expected
    assert converted(tmp_path, recording, binary, probes="off") == expected


@pytest.mark.parametrize("words", [(), ("md5_names",), ("symbol_list",)], ids=str)
def test_the_binary_form_holds_what_llvm_profgen_writes(
    words: tuple[str, ...], built: Built, tool: Tool, tmp_path: Path, run
) -> None:
    binary = built(*BUILDS["c++"])
    recording = walked(tmp_path, binary)
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    made = output("llvm", ours, form="extbinary", **dict.fromkeys(words, True))
    convert(ConvertOptions((recording,), binary, outputs=(made,)))
    flags = {"md5_names": "--use-md5", "symbol_list": "--populate-profile-symbol-list"}
    run(tool("llvm-profgen-22"), "--format=extbinary", "--ignore-stack-samples",
        f"--perfscript={recording}", f"--binary={binary}", f"--output={theirs}",
        *(flags[word] for word in words))  # fmt: skip
    profdata = tool("llvm-profdata-22")
    commands = [("show",), ("merge", "--text")]
    commands += [("show", "--show-prof-sym-list")] * ("symbol_list" in words)
    for command in commands:
        said = []
        for path in (ours, theirs):
            out = tmp_path / f"{path.name}.said"
            done = run(profdata, *command, "--sample", path, "-o", out)
            said.append((done.stdout, done.stderr, out.read_text()))
        assert said[0] == said[1]
        assert len(said[0][2]) > 1000
    assert extbinary.read(ours) == extbinary.read(theirs)
    assert ours.stat().st_size == theirs.stat().st_size


@pytest.mark.parametrize("form", ["text", "extbinary"])
def test_clang_takes_the_profile_and_makes_of_it_what_it_makes_of_llvms(
    form: str, built: Built, tool: Tool, tmp_path: Path
) -> None:
    for build, source in (("plain", C), ("c++", CXX)):
        binary = built(*BUILDS[build])
        recording = walked(tmp_path, binary)
        theirs = tmp_path / "theirs.prof"
        theirs.write_text(profgen(tool, tmp_path, recording, binary))
        ours = output("llvm", tmp_path / "ours", form=form)
        convert(ConvertOptions((recording,), binary, outputs=(ours,)))
        made = [recompiled(BUILDS[build][0], source, path, tool) for path in (ours.path, theirs)]
        plain = recompiled(BUILDS[build][0], source, None, tool)
        assert made[0] == made[1] != plain


def recompiled(command: str, source: Path, profile: Path | None, tool: Tool) -> str:
    """What clang makes of a program with a profile, which it has no complaint about."""
    compiler, *flags = command.split()
    used = [] if profile is None else [f"-fprofile-sample-use={profile}"]
    done = subprocess.run(
        [tool(compiler), *flags, *used, "-g", "-Wall", "-Rpass-analysis=sample-profile", "-S",
         "-emit-llvm", "-Wno-unused-command-line-argument", "-o", "-", source],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    assert (done.stderr.count("Applied") > 30) == (profile is not None)
    return done.stdout


# ---------------------------------------------------------------------------- what is lacking


def stripped(where: Path, binary: Path, tool: Tool, *words: str) -> Path:
    target = where / "stripped"
    subprocess.run([tool("llvm-objcopy-22"), *words, binary, target], check=True)
    return target


def test_probes_need_no_debug_information(built: Built, tool: Tool, tmp_path: Path) -> None:
    whole = built(*BUILDS["c++"])
    expected = converted(tmp_path, walked(tmp_path, whole), whole)
    binary = stripped(tmp_path, whole, tool, "--strip-debug")
    recording = walked(tmp_path, binary)
    assert converted(tmp_path, recording, binary) == expected
    assert profgen(tool, tmp_path, recording, binary) == expected


def test_probes_may_be_asked_for(built: Built, tmp_path: Path) -> None:
    binary = built("clang-22 -O1", C)
    recording = walked(tmp_path, binary)
    with pytest.raises(IncompleteError, match="no pseudo probes"):
        converted(tmp_path, recording, binary, probes="on")
    probed = built(*BUILDS["plain"])
    recording = walked(tmp_path, probed)
    assert "!CFGChecksum" in converted(tmp_path, recording, probed, probes="on")


def test_a_recording_of_which_no_code_is_counted(built: Built, tmp_path: Path) -> None:
    binary = built(*BUILDS["plain"])
    recording = tmp_path / "one.traces"
    main = Program.open(binary).address_of("main")
    recording.write_text(f"B {main + 1:x} {main + 2:x} 9 0\n")  # both inside of instructions
    with pytest.raises(EmptyProfileError):
        converted(tmp_path, recording, binary)


def test_functions_without_probes_are_lost_and_counted(built: Built, tool: Tool, tmp_path: Path):
    """Of two files only one is built with probes."""
    half = tmp_path / "half.o"
    flags = ("-O1", "-g", "-c", "-o", half)
    subprocess.run([tool("clang-22"), *flags, ROOT / "tests/programs" / TWO[0]], check=True)
    binary = built(CLANG + " -O1", half, TWO[1])
    recording = walked(tmp_path, binary)
    made = (output("llvm", tmp_path / "ours"),)
    done = convert(ConvertOptions((recording,), binary, outputs=made))
    assert done.tallies["runs_located/no_probes"] > 100
    assert done.tallies["runs_located"] == done.tallies["llvm_runs"] > 100
    assert (tmp_path / "ours").read_text() == profgen(tool, tmp_path, recording, binary)


def with_section(
    where: Path, binary: Path, name: str, change: Callable[[bytes], bytes], tool: Tool
) -> Path:
    """The program with other bytes in a section."""
    section, damaged = where / "section", where / "damaged"
    view = Program.open(binary).image.section_view(name)
    assert view is not None
    section.write_bytes(change(bytes(view)))
    words = (f"--update-section={name}={section}", binary, damaged)
    subprocess.run([tool("llvm-objcopy-22"), *words], check=True)
    return damaged


CUT = {
    "probes": (".pseudo_probe", lambda data: data[: len(data) // 2]),
    "descriptors": (".pseudo_probe_desc", lambda data: data[: len(data) // 2 - 3]),
    "noise": (".pseudo_probe", lambda data: data[: len(data) // 2] + bytes(range(256)) * 8),
}


@pytest.mark.parametrize("contexts", ["off", "nested"])
@pytest.mark.parametrize("damage", CUT)
def test_what_damage_of_a_section_leaves_is_used_and_the_rest_counted(
    damage: str, contexts: str, built: Built, tool: Tool, tmp_path: Path
) -> None:
    whole = built(*BUILDS["plain"])
    binary = with_section(tmp_path, whole, *CUT[damage], tool)
    recording = tmp_path / "hybrid.perfscript"
    recording.write_text(write_hybrid([w.sample for w in BinaryWalk(whole, 1).hybrid(300)]))
    kept, lost = {}, {}
    for program in whole, binary:
        made = (output("llvm", tmp_path / "out", contexts=contexts),)
        done = convert(ConvertOptions((recording,), program, outputs=made))
        waterfall.check(done.tallies, steps())
        kept[program] = set(read(tmp_path, (tmp_path / "out").read_text()).functions)
        step = "runs_located" if contexts == "off" else "context_located"
        lost[program] = sum(waterfall.losses_of(done.tallies, step).values())
    assert 0 < len(kept[binary]) < len(kept[whole])
    assert lost[binary] > lost[whole]
    assert any(f"bytes of {CUT[damage][0]} that make no sense" in note for note in done.notes)


def test_probes_without_symbols_give_no_profile_and_say_why(
    built: Built, tool: Tool, tmp_path: Path
) -> None:
    whole = built(*BUILDS["plain"])
    kept = (f"--keep-section=.pseudo_probe{end}" for end in ("", "_desc"))
    binary = stripped(tmp_path, whole, tool, "--strip-all", *kept)
    recording = walked(tmp_path, whole)
    text = recording.read_text()
    recording.write_text(text.replace(str(whole), str(binary)))
    with pytest.raises(EmptyProfileError, match="in code that no symbol names"):
        converted(tmp_path, recording, binary)


def test_functions_that_only_symbols_know_have_prologues_where_probes_are_looked_at(
    built: Built, tool: Tool, tmp_path: Path
) -> None:
    """llvm-profgen drops the sample in the first instruction of `_start`, but not by lines."""
    binary = built(*BUILDS["plain"])
    program = Program.open(binary)
    symbols = program.symbols
    start, main = (int(symbols.start[symbols.names.index(name)]) for name in ("_start", "main"))
    code = program.instructions_for(image_array((main,)))
    leaving = code.address[(code.kind != Kind.OTHER) & (code.address > main)]
    entries = [(int(leaving[0]), main), (0x7FFFF7C00000, main)]
    recording = tmp_path / "start.perfscript"
    recording.write_text(write_hybrid([Hybrid([leaf], entries) for leaf in (start, leaving[0])]))
    found = []
    for probes, options in ("on", ()), ("off", ("--use-dwarf-correlation",)):
        expected = profgen(tool, tmp_path, recording, binary, *options)
        assert converted(tmp_path, recording, binary, compat=True, probes=probes) == expected
        found.append(read(tmp_path, expected).functions["main"].head)
    assert 0 < found[0] < found[1]


def test_code_of_a_function_with_probes_is_told_from_other_code() -> None:
    starts = np.array([0x10, 0x20, 0x30], np.uint64)
    functions = DwarfFunctions(
        starts, starts + np.uint64(8), np.array([0, 1, 0], np.int32), ("f", "g")
    )
    addresses = np.array([0x11, 0x21, 0x34, 0x40], np.uint64)
    for probed, told in (([0x10, 0x41], [1, 0, 1, 0]), ([0x22], [0, 1, 0, 0]), ([], [0] * 4)):
        assert is_probed(functions, np.array(probed, np.uint64), addresses).tolist() == told
