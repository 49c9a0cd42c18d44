from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import ROOT, Run, Tool

from lbr2pgo.pgo.flags import (
    KEPT_CALLS,
    OVERWRITTEN,
    PROBES,
    UNPROBED,
    UNRELAXED,
    WantedFlags,
    afdo_version,
    base_flags,
    layout_flags,
    order_flags,
    plain_flags,
    profile_flags,
    training_flags,
)
from lbr2pgo.pgo.kinds import USED
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program

PROGRAMS = ROOT / "tests" / "programs"


def test_the_users_flags_come_first_and_stay() -> None:
    own = {"CFLAGS": "-O3 -Wall", "CXXFLAGS": "", "LDFLAGS": "-fuse-ld=lld"}
    settings = plain_flags(WantedFlags(bolt=True)).settings(own)
    assert settings == {
        "CFLAGS": "-O3 -Wall -g -fdebug-info-for-profiling",
        "CXXFLAGS": " -g -fdebug-info-for-profiling",
        "LDFLAGS": "-fuse-ld=lld -Wl,--build-id -Wl,--emit-relocs",
    }


def test_who_sets_nothing_gets_an_optimised_build() -> None:
    assert plain_flags(WantedFlags()).settings({}) == {
        "CFLAGS": "-O2 -g -fdebug-info-for-profiling",
        "CXXFLAGS": "-O2 -g -fdebug-info-for-profiling",
        "LDFLAGS": "-Wl,--build-id",
    }


def test_the_profile_is_found_from_any_directory() -> None:
    (flag,) = set(profile_flags(Path("a.prof"), WantedFlags()).compile) - set(
        plain_flags(WantedFlags()).compile
    )
    assert flag == f"-fprofile-sample-use={Path.cwd() / 'a.prof'}"


def test_every_build_has_probes_and_only_the_recorded_one_frame_pointers_and_more() -> None:
    wanted = WantedFlags(probes=True, frame_pointers=True, training=("-O1",))
    recorded = training_flags(wanted)
    others = plain_flags(wanted), profile_flags(Path("a.prof"), wanted)
    for each in (recorded, *others):
        assert "-fpseudo-probe-for-profiling" in each.compile
    assert "-fno-omit-frame-pointer" in recorded.compile
    assert recorded.compile[-1] == "-O1"
    for each in others:
        assert not {"-fno-omit-frame-pointer", "-O1"} & set(each.compile)


def test_the_recorded_build_alone_keeps_calls_that_are_alike_apart() -> None:
    wanted = WantedFlags(probes=True, training=("-O1",))
    assert set(KEPT_CALLS) < set(training_flags(wanted).compile)
    assert not set(KEPT_CALLS) & set(plain_flags(wanted).compile)
    used = set(profile_flags(Path("a.prof"), wanted).compile)
    assert set(KEPT_CALLS) & used == {"-mllvm"} == set(KEPT_CALLS) & set(OVERWRITTEN)
    assert not set(KEPT_CALLS) & set(training_flags(replace(wanted, probes=False)).compile)


@pytest.mark.parametrize("level", ["-O1", "-O2"])
def test_calls_that_are_kept_apart_have_probes(
    level: str, tmp_path: Path, tool: Tool, run: Run
) -> None:
    """Of the five that clang 22 makes of nine, those that were several have none."""
    found = []
    for flags in ((), KEPT_CALLS):
        code = tmp_path / "code.so"
        build = (tool("clang++-22"), level, "-g1", "-shared", "-fPIC", *PROBES, *flags)
        run(*build, PROGRAMS / "alike_calls.cpp", "-o", code)
        program = Program.open(code)
        probes = program.probes.table()
        inside = program.instructions_for(np.unique(probes.address))
        calls = inside.address[inside.kind == Kind.INDIRECT_CALL]
        found.append((len(calls), int((probes.call_at(calls) < 0).sum())))
    assert found == [(5, 3), (9, 0)]


def test_samples_of_probes_alone_tell_over_what_the_source_expects() -> None:
    wanted, profile = WantedFlags(probes=True), Path("a.prof")
    assert set(OVERWRITTEN) < set(profile_flags(profile, wanted).compile)
    others = WantedFlags(), WantedFlags("gcc"), WantedFlags(counts=Path("counts"))
    for flags in (plain_flags(wanted), *(profile_flags(profile, each) for each in others)):
        assert not set(OVERWRITTEN) & set(flags.compile)


@pytest.mark.parametrize(
    ("flags", "weights"),
    [
        ((), '!"expected", i32 2000, i32 1'),
        (OVERWRITTEN, "i32 3, i32 97"),
        ((*OVERWRITTEN, *USED["expected"]), '!"expected", i32 2000, i32 1'),
    ],
)
def test_clang_takes_the_samples_or_what_is_expected(
    flags: tuple[str, ...], weights: str, tmp_path: Path, tool: Tool
) -> None:
    (tmp_path / "seldom.c").write_text(
        "int one(void), two(void);\n"
        "int seldom(int x) {\n"
        "  if (__builtin_expect(x == 1, 1))\n"
        "    return one();\n"
        "  return two();\n"
        "}\n"
    )
    (tmp_path / "prof").write_text("seldom:200:100\n 1: 100\n 2: 3 one:3\n 3: 97 two:97\n")
    words = (
        tool("clang-22"), "-O2", "-g1", "-fdebug-info-for-profiling", "-fprofile-sample-use=prof",
        *flags, "-S", "-emit-llvm", "seldom.c", "-o", "-",
    )  # fmt: skip
    done = subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert f'!{{!"branch_weights", {weights}}}' in done.stdout
    assert done.stderr == ""


def test_flags_for_clang_are_no_news_where_cflags_reach_the_linker(
    tmp_path: Path, tool: Tool
) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    cflags = *OVERWRITTEN, *KEPT_CALLS, "-Werror"
    for words in (("-c", "main.c"), ("main.o", "-o", "main")):
        subprocess.run([tool("clang-22"), *cflags, *words], cwd=tmp_path, check=True)


def test_what_keeps_the_linker_from_relaxing_is_in_what_is_recorded() -> None:
    wanted = WantedFlags(probes=True, unrelaxed=True)
    for recorded in (plain_flags(wanted), training_flags(wanted)):
        assert set(UNRELAXED) < set(recorded.compile)
    built = profile_flags(Path("a.prof"), wanted)
    assert set(UNRELAXED) & set(built.compile) == {"-mllvm"} == set(UNRELAXED) & set(OVERWRITTEN)
    assert set(UNPROBED) < set(built.compile)
    assert plain_flags(replace(wanted, probes=False)) == plain_flags(WantedFlags())


def test_blocks_are_laid_out_in_a_build_that_tells_where_they_are_again(tmp_path: Path) -> None:
    plain = plain_flags(WantedFlags(propeller=True))
    assert "-fbasic-block-address-map" in plain.compile
    assert "-fuse-ld=lld" in plain.link
    laid_out = layout_flags(plain, tmp_path / "cc", tmp_path / "ld")
    assert set(laid_out.compile) - set(plain.compile) == {
        f"-fbasic-block-sections=list={tmp_path}/cc"
    }
    assert set(laid_out.link) - set(plain.link) == {
        f"-Wl,--lto-basic-block-sections={tmp_path}/cc", "-Wl,--no-warn-symbol-ordering",
        f"-Wl,--symbol-ordering-file={tmp_path}/ld",
    }  # fmt: skip


def test_functions_are_ordered_in_the_build_that_was_recorded(tmp_path: Path) -> None:
    wanted = WantedFlags(startup=True)
    plain = plain_flags(wanted)
    assert "-ffunction-sections" in plain.compile
    assert "-fuse-ld=lld" in plain.link
    ordered = order_flags(plain, tmp_path / "order")
    assert ordered.compile == plain.compile
    assert set(ordered.link) - set(plain.link) == {
        "-Wl,--no-warn-symbol-ordering", f"-Wl,--symbol-ordering-file={tmp_path}/order"
    }  # fmt: skip
    assert base_flags(wanted) == base_flags(WantedFlags())


def test_gcc_is_given_flags_that_it_knows(tmp_path: Path, tool: Callable[[str], str]) -> None:
    flags = profile_flags(tmp_path / "gone.afdo", WantedFlags("gcc", bolt=True))
    assert flags.compile == (
        "-g", "-fno-reorder-blocks-and-partition", f"-fauto-profile={tmp_path}/gone.afdo"
    )  # fmt: skip
    known = (*flags.compile[:-1], f"-fauto-profile={os.devnull}")
    subprocess.run([tool("gcc"), *known, "-x", "c", "-E", os.devnull], check=True)


@pytest.mark.parametrize(
    ("said", "version"), [("11", "1"), ("12", "2"), ("15.1", "2"), ("16", "3")]
)
def test_the_version_for_gcc_is_the_one_that_it_reads(
    tmp_path: Path, said: str, version: str
) -> None:
    gcc = tmp_path / "gcc"
    gcc.write_text(f"#!/bin/sh\necho {said}\n")
    gcc.chmod(0o755)
    assert afdo_version({"CC": str(gcc)}) == version
    assert afdo_version({"CC": str(tmp_path / "none")}) == "2"
