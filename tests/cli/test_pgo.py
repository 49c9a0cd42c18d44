"""`lbr2pgo pgo` as a user runs it; the loop's own tests stand in tests/pgo/test_loop.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from builders.goals import BUILD_SHRUNK, write_shrunk
from builders.outputs import held
from builders.sample_profiles import has_marks

from lbr2pgo.cli import _parser
from lbr2pgo.cli.pgo import _options
from lbr2pgo.pgo.flags import KEPT_CALLS, PROBES

SOURCE = Path(__file__).parents[2] / "testbins" / "src" / "interp.c"


@pytest.fixture(autouse=True)
def _tools(tool, monkeypatch, tmp_path):
    tool("clang-22"), tool("qemu-x86_64")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CC", "clang-22")
    monkeypatch.setenv("CXX", "clang++-22")


def test_a_program_is_built_trained_rebuilt_and_measured(command):
    answer = command(
        "pgo", "--build", f"$CC $CFLAGS {SOURCE} -o app $LDFLAGS", "--binary", "app",
        "--train", "./app 2", "--measure", "./app 3", "-c", "1009", "--runs", "0",
    )  # fmt: skip
    assert answer.code == 0
    lines = answer.err.splitlines()
    steps = [line.partition(":") for line in lines if line[:1].isdigit()]
    assert [title for title, _, _ in steps] == [
        "1. Build without a profile", "2. Build what is to be recorded", "3. Train",
        "4. Convert for the compiler", "5. Build with the profile", "6. Measure",
    ]  # fmt: skip
    rows = [line.split()[0] for line in answer.out.splitlines()]
    first = rows.index("program")
    assert rows[first : first + 3] == ["program", "app.lbr2pgo/app.before", "app"]
    assert rows[first + 3 : first + 5] == ["simulated:", "cycles,"]
    assert rows[-6:] == ["Verdict:", "Measured", "Ship", "Keep", "Keep", "Keep"]
    assert "Measured on: ./app 3\n" in answer.out
    assert "Ship app." in answer.out
    assert "samples for each location of hot functions" in answer.err
    assert all(re.match(r" [0-9.]+ s(, about .* left)?$", took) for _, _, took in steps)
    assert all("left" in took for _, _, took in steps[2:-1])
    others = [line for line in lines if not line[:1].isdigit()]
    assert [line for line in others if not line.startswith(("   Note: ", "   Too few"))] == [
        "Builds are logged in app.lbr2pgo/app.build.log; all commands are in "
        "app.lbr2pgo/app.commands.sh."
    ]
    assert "-fprofile-sample-use=" in Path("app.lbr2pgo/app.commands.sh").read_text()
    profile = held(Path("app.lbr2pgo/app.prof"))
    assert profile.is_probe_based
    assert has_marks(profile)


@pytest.mark.parametrize(
    ("goal", "shipped"), [("speed", "app.lbr2pgo/app.before"), ("balanced", "app")]
)
def test_a_build_of_equal_speed_and_less_code_is_shipped_for_both(command, goal, shipped):
    write_shrunk()
    answer = command(
        "pgo", "--build", BUILD_SHRUNK, "--binary", "app", "--train", "./app 20",
        "--measure", "./app 10", "-c", "1009", "--runs", "0", "--emulate", "--for", goal,
    )  # fmt: skip
    assert answer.code == 0
    lines = answer.out.splitlines()
    (cycles,) = (line for line in lines if line.startswith("cycles, estimated "))
    (code,) = (line.split()[-4] for line in lines if line.startswith("app  "))
    assert 0.99 < float(cycles.split("(")[-1].rstrip(")")) < 1.01
    assert float(code.strip("()")) < 0.8
    assert f"Ship {shipped}." in lines


@pytest.mark.parametrize(
    ("words", "has_contexts"),
    [
        ((), True),
        (("--bolt", "--both", "--training-flags=-Og"), True),
        (("--contexts", "--training-flags="), True),
        (("--contexts", "--lines"), True),
        (("--probes",), False),
        (("--lines",), False),
        (("--exact",), False),
        (("--reproducible",), False),
        (("--again",), False),
        (("--training-flags=",), False),
        (("--propeller",), False),
        (("--compiler=gcc",), False),
    ],
)
def test_contexts_are_told_where_nothing_else_is_asked_for(words, has_contexts):
    needed = ("pgo", "--build", "make", "--binary", "app", "--train", "./app")
    asked = _options(_parser("pgo").parse_args([*needed, *words]))
    assert asked.train.call_graph is has_contexts


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ((), " ".join((*PROBES, *KEPT_CALLS, "-O1"))),
        (("--lines",), "-fdebug-info-for-profiling -O1"),
        (("--training-flags=",), ""),
        (("--lines", "--training-flags=-Og -fno-inline"), "-Og -fno-inline"),
    ],
)
def test_what_is_recorded_is_the_users_choice(command, words, flags):
    answer = command(
        "pgo", "--build", f"$CC $CFLAGS {SOURCE} -o app $LDFLAGS", "--binary", "app",
        "--train", "./app 1", "--to-step", "training-build", "--verbose", *words,
    )  # fmt: skip
    assert answer.code == 0
    built = [line for line in answer.err.splitlines() if "CFLAGS=" in line]
    assert len(built) == (2 if flags else 1)
    assert f"{flags}' CXXFLAGS" in built[-1]
    assert ("-fpseudo-probe" in built[-1]) == ("--lines" not in words)
    assert not flags or "-fpseudo-probe" not in built[0]


def test_contexts_are_told_for_risc_v_as_everywhere(command, tool):
    tool("qemu-riscv64")
    build = f"$CC --target=riscv64-linux-gnu -fuse-ld=lld $CFLAGS {SOURCE} -o app $LDFLAGS"
    bare = "pgo", "--build", build, "--binary", "app", "--train", "./app 1", "--runs=0"
    answer = command(*bare)
    assert answer.code == 0
    assert "Note: clang places no pseudo probes" in answer.err
    assert ".sleb128" not in answer.err
    assert "app needs" in answer.out


def test_lines_do_where_clang_splits_functions_and_nothing_else_is_asked_for(command):
    build = f"$CC -fbasic-block-sections=all -fuse-ld=lld $CFLAGS {SOURCE} -o app $LDFLAGS"
    bare = (
        "pgo", "--build", build, "--binary", "app", "--train", "./app 1",
        "--to-step=training-build",
    )  # fmt: skip
    for asked in ("--probes", "--contexts"):
        answer = command(*bare, asked)
        assert answer.code == 2
        assert "Give --lines." in answer.err
    answer = command(*bare)
    assert answer.code == 0
    assert "goes on by lines" in answer.err


@pytest.mark.parametrize(
    ("words", "is_said"),
    [
        ((), True), (("--lines",), False), (("--probes", "--contexts"), False),
        (("--instrumented",), False),
    ],
)  # fmt: skip
def test_lines_that_propeller_takes_unasked_are_said(command, words, is_said):
    answer = command(
        "pgo", "--build", "false", "--binary", "app", "--train", "./app 1", "--propeller", *words
    )
    assert answer.code == 2
    said = "for Propeller, profiles are of source lines; --probes --contexts often gain more"
    assert (said in answer.err) == is_said


def test_lines_and_probes_are_one_choice(command):
    answer = command("pgo", "--lines", "--probes")
    assert answer.code == 2
    assert "not allowed with" in answer.err


def test_a_build_that_fails_ends_it_with_what_the_compiler_lacks(command, tool, monkeypatch):
    monkeypatch.setenv("CC", tool("gcc"))
    answer = command(
        "pgo", "--build", f"$CC $CFLAGS {SOURCE} -o app", "--binary", "app", "--train", "./app"
    )
    assert answer.code == 2
    assert ": gcc does not know -fdebug-info-for-profiling" in answer.err
    assert "CC=clang-22 CXX=clang++-22" in answer.err
    step, ran = answer.err.splitlines()[-4:-2]
    assert step == "1. Build without a profile: failed"
    assert ran.startswith("   CFLAGS=")


def test_without_a_training_command_it_says_what_to_give(command):
    answer = command("pgo", "--build", "true", "--binary", "app")
    assert answer.code == 2
    assert "there is no training command" in answer.err


@pytest.mark.slow
def test_two_reproducible_builds_are_one(command, run, tmp_path, monkeypatch):
    """In other directories, and another environment."""
    built = []
    for name in ("one", "far/from/it"):
        (tmp_path / name).mkdir(parents=True)
        monkeypatch.chdir(tmp_path / name)
        monkeypatch.setenv("MORE", name)
        answer = command(
            "pgo", "--reproducible", "--to-step", "rebuild", "--binary", "app",
            "--build", f"$CC $CFLAGS {SOURCE} -o app $LDFLAGS", "--train", "./app 2",
        )  # fmt: skip
        assert answer.code == 0, answer.err
        assert "--reproducible" in Path("app.lbr2pgo/app.commands.sh").read_text()
        run("objcopy", "-O", "binary", "--only-section=.text", "app", "text")
        built.append((Path("text").read_bytes(), Path("app.lbr2pgo/app.prof").read_bytes()))
    assert built[0] == built[1]
