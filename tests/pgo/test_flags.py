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
    assert not set(KEPT_CALLS) & set(profile_flags(Path("a.prof"), wanted).compile)
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


def test_what_keeps_the_linker_from_relaxing_is_in_what_is_recorded() -> None:
    wanted = WantedFlags(probes=True, unrelaxed=True)
    for recorded in (plain_flags(wanted), training_flags(wanted)):
        assert set(UNRELAXED) < set(recorded.compile)
    built = profile_flags(Path("a.prof"), wanted)
    assert not set(UNRELAXED) & set(built.compile)
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
