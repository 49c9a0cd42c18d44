"""Profiles of a program whose static functions had other names."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.binary_walks import walked
from builders.fixtures import Run, Tool
from builders.recordings import TESTBINS

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.registry import output, read_written
from lbr2pgo.profiles.staleness import Misfit, Staleness
from lbr2pgo.program.program import Program

UNIQUE = "-funique-internal-linkage-names"
FLAGS = ("-O2", "-g", "-fdebug-info-for-profiling", "-fuse-ld=lld", "-Wl,-q")


@pytest.fixture
def stale(tool: Tool, run: Run, tmp_path: Path):
    """How stale a profile of a build is for one of another path and other flags."""
    source = (TESTBINS / "src" / "interp.c").read_text()

    def build(name: str, *flags: str, text: str = source) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "interp.c").write_text(text)
        run(tool("clang-22"), *FLAGS, *flags, folder / "interp.c", "-o", folder / "interp")
        return folder / "interp"

    def of(form: str, old: Path, new: Path) -> Staleness:
        profile = old.with_suffix(f".{form}")
        convert(ConvertOptions((walked(old.parent, old),), old, (output(form, profile),)))
        written = read_written(profile)
        assert written is not None
        found = written.staleness(Program.open(new))
        assert found is not None
        return found

    return build, of


@pytest.mark.parametrize("form", ["llvm", "fdata"])
@pytest.mark.parametrize(("before", "after"), [((), (UNIQUE,)), ((UNIQUE,), ()), ((UNIQUE,),) * 2])
def test_it_is_the_same_program_s(stale, form, before, after):
    build, of = stale
    found = of(form, build("before", *before), build("after", *after))
    assert found.misfit() is Misfit.NAMES
    assert "calls otherwise" in found.reason(Misfit.NAMES, "app")


def test_functions_that_are_not_there_at_all_are_another_program_s(stale):
    build, of = stale
    other = "static int g(int n) { return n; } int main(int n, char **v) { return g(n); }"
    found = of("fdata", build("before", UNIQUE), build("after", UNIQUE, text=other))
    assert found.misfit() is Misfit.PROGRAM
