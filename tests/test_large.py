"""Builds of which only some files are compiled again, and the table of large programs."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from builders.outputs import held

from lbr2pgo.pgo.built_code import RECORD_FLAGS
from lbr2pgo.pgo.flags import WantedFlags, profile_flags, training_flags
from lbr2pgo.pgo.kinds import TRAINING_FLAGS

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MAIN = """\
#include "both.h"
int other(int);
int main(int argc, char **) {
  int sum = 0;
  for (int i = 0; i < 1000; i++) sum += both(i) ^ argc;
  return other(sum) == 3;
}
"""
OTHER = """\
#include "both.h"
int other(int i) {
  while (i % 997) i += both(i) + 1;
  return i;
}
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project(tiny CXX)
add_library(others STATIC other.cc never.cc)
add_executable(tiny main.cc)
target_link_libraries(tiny others m)
"""
BOTH = "__attribute__((noinline)) inline int both(int i) { return i & 1 ? i : 7; }\n"


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import large

    return large


def write_sources(source: Path) -> None:
    source.mkdir(parents=True)
    texts = {
        "CMakeLists.txt": CMAKE, "both.h": BOTH, "main.cc": MAIN,
        "other.cc": OTHER,
        "never.cc": "int never(int i) { return i; }\n",
    }  # fmt: skip
    for name, text in texts.items():
        (source / name).write_text(text)


@pytest.fixture
def build(large: Any, tmp_path: Path) -> Any:
    source = tmp_path / "source"
    write_sources(source)
    found = large.PartBuild(tmp_path / "base", "tiny")
    found.configure(source, [])
    return found


def symbols(program: Path) -> str:
    return subprocess.run(["nm", "-C", program], check=True, capture_output=True, text=True).stdout


def place_of_both(program: Path) -> str:
    linked = Path(f"{program}.map").read_text().splitlines()
    (found,) = (line for line in linked if ":(.text._Z4bothi)" in line)
    return found


def test_all_objects_are_linked_without_the_archives_that_had_them(
    build: Any, tmp_path: Path
) -> None:
    build.link(tmp_path / "all")
    assert " T other(int)" in symbols(tmp_path / "all")
    assert " T never(int)" in symbols(tmp_path / "all")  # an archive's would be left out
    assert [Path(each.object).name for each in build.compilations] == [
        "main.cc.o", "other.cc.o", "never.cc.o",
    ]  # fmt: skip
    assert subprocess.run([tmp_path / "all"], check=False).returncode in (0, 1)


def test_what_is_linked_first_defines_what_several_files_define(
    build: Any, large: Any, tmp_path: Path
) -> None:
    build.link(tmp_path / "usual")
    assert "main.cc.o" in place_of_both(tmp_path / "usual")
    (other,) = (each.object for each in build.compilations if "other.cc" in each.object)
    made = build.compile([other], tmp_path / "again", "-O1")
    assert list(made) == [other]
    build.link(tmp_path / "first", made)
    assert str(made[other]) in place_of_both(tmp_path / "first")


def test_the_fewest_objects_are_hot_that_have_the_share_of_branches(
    build: Any, large: Any, tmp_path: Path
) -> None:
    program, counts = tmp_path / "all", tmp_path / "exact"
    build.link(program)
    recorded = "--exact", counts, "-o", tmp_path / "data", "--", program
    subprocess.run(
        [*large.LBR2PGO, "record", "--emulate", *recorded], check=False, capture_output=True
    )
    # main.cc has a thousand rounds and both(); other.cc goes on to a multiple of 997.
    names = [Path(name).name for name in build.hot_objects(program, counts, 0.99)]
    assert sorted(names) == ["main.cc.o", "other.cc.o"]
    assert len(build.hot_objects(program, counts, 0.3)) == 1


def figures(large: Any, text: int, *runs: Sequence[int], output: str = "0 same") -> Any:
    return large.Figures(text, runs, [output] * len(runs))


def test_a_share_is_of_other_input_first_and_then_of_the_training_input(large: Any) -> None:
    found = {
        "plain": figures(large, 100_000, (1000, 1000), (1000, 100), (2000, 200)),
        # sqrt(0.4 · 0.9) = 0.6 of the instructions
        "instrumented": figures(large, 90_000, (800, 995), (400, 50), (1800, 100)),
        # sqrt(0.5 · 0.98) = 0.7
        "probes": figures(large, 101_500, (900, 990), (500, 60), (1960, 120)),
        "wrong": figures(large, 1, (1, 1), (1, 1), (1, 1), output="0 other"),
    }
    assert large.row(found, "probes") == ["probes", "75%", "80%", "50%", "-", "+1.5", "+11.5"]
    assert large.row(found, "wrong")[0] == "wrong (does other work)"


@pytest.mark.slow
def test_one_kind_is_made_as_pgo_makes_it_by_default(
    large: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from part_builds import COMPILED

    compiled: dict[str, Sequence[str]] = {}
    compile_ = large.PartBuild.compile

    def told(self: Any, names: Sequence[str], out: Path, *flags: str) -> Any:
        compiled[out.stem] = flags
        return compile_(self, names, out, *flags)

    monkeypatch.setattr(large.PartBuild, "compile", told)
    monkeypatch.chdir(tmp_path)
    write_sources(Path("sources/tiny"))
    tiny = large.Large("tiny", "tiny", (), "", ("1",))
    (row,) = large.rows(tiny, ["contexts-O1-overwritten"], 0.9)
    assert row[:2] == ["tiny", "contexts-O1-overwritten"]
    profile = tmp_path / "tiny/contexts-O1-overwritten.prof"
    assert "_Z5neveri" in held(profile).symbols  # type: ignore[union-attr]
    wanted = WantedFlags(probes=True, training=TRAINING_FLAGS)
    shared = {*COMPILED.split(), *RECORD_FLAGS, "-g"}
    for name, flags in (
        ("training", training_flags(wanted)), (row[1], profile_flags(profile, wanted))
    ):  # fmt: skip
        assert [each for each in flags.compile if each not in shared] == [*compiled[name]]
