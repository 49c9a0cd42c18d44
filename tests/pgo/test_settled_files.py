"""Profiles of real recordings, settled."""

from __future__ import annotations

from difflib import unified_diff
from functools import partial
from pathlib import Path

import pytest
from builders.fixtures import TESTBINS, Run, Tool

import lbr2pgo

SHAPES = TESTBINS / "src" / "shapes.cpp"
FLAGS = ("-O2", "-g1", "-fdebug-info-for-profiling", "-fuse-ld=lld")


def trained(program: Path, seed: int) -> Path:
    """The profile of a run."""
    recording, profile = (program.with_suffix(f".{seed}{end}") for end in (".data", ".prof"))
    lbr2pgo.record([program, "20"], output=recording, period=499, seed=seed, emulate=True)
    lbr2pgo.convert(recording, program, llvm=profile, stable=True)
    return profile


@pytest.mark.slow
def test_a_new_training_changes_nothing_and_a_new_function_few_lines(
    tool: Tool, run: Run, tmp_path: Path
) -> None:
    tool("qemu-x86_64")
    source = SHAPES.read_text()
    changed = source.replace("sum = 0;\n", 'sum = 0;\n        asm volatile("" : "+r"(sum));\n\n', 1)
    programs = []
    for name, text in (("before", source), ("after", changed)):
        (tmp_path / "shapes.cpp").write_text(text)
        programs.append(tmp_path / name)
        run(tool("clang++-22"), *FLAGS, "shapes.cpp", "-o", name, cwd=tmp_path)
    old, settled = trained(programs[0], 1), tmp_path / "settled.prof"
    settle = partial(lbr2pgo.settle, onto=old, output=settled)
    again = trained(programs[0], 2)
    assert settle(again).changed == ()
    assert settled.read_bytes() == old.read_bytes() != again.read_bytes()
    assert any("Staircase" in name for name in settle(trained(programs[1], 3)).changed)
    lines = [path.read_text().splitlines() for path in (old, settled)]
    added = [line for line in unified_diff(*lines, n=0) if line[0] == "+"][1:]
    assert 0 < len(added) <= 0.05 * len(lines[0])


def test_what_is_written_is_no_input(tmp_path: Path) -> None:
    profile = tmp_path / "app.prof"
    profile.write_text("f:1:1\n 1: 1\n")
    with pytest.raises(lbr2pgo.OutputError, match="over an input"):
        lbr2pgo.settle(profile, profile, profile)


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ("0 [unknown] 0 1 main 0 0 1\n", "is of another kind (fdata) than"),
        ("f:1:1\n 1: 1\n !CFGChecksum: 7\n", "(sample profiles by pseudo probe) than"),
        ("no profile\n", "is no written profile"),
    ],
)
def test_profiles_that_are_not_alike_are_refused(tmp_path: Path, new: str, said: str) -> None:
    profile, other, output = (tmp_path / name for name in ("app.prof", "new", "out"))
    profile.write_text("f:1:1\n 1: 1\n")
    other.write_text(new)
    with pytest.raises(lbr2pgo.InputError) as error:
        lbr2pgo.settle(other, profile, output)
    assert said in error.value.headline
    assert not output.exists()


def test_others_are_committed_as_they_are(tmp_path: Path) -> None:
    fdata = tmp_path / "fdata"
    fdata.write_text("0 [unknown] 0 1 main 0 0 1\n")
    with pytest.raises(lbr2pgo.InputError, match=r"no sample profile for clang \(BOLT fdata\)"):
        lbr2pgo.settle(fdata, fdata, tmp_path / "out")
