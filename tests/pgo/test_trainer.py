"""What is recorded of which build; the usual ways are test_loop.py's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from builders.loops import BUILD, MakeLoop, is_recorded, steps
from builders.outputs import held

from lbr2pgo.pgo import training as module
from lbr2pgo.pgo.trainer import count_in_program, merge_counts
from lbr2pgo.pgo.training import Training
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.program.elf.image import Image
from lbr2pgo.provenance.verifying import why_not_verified
from lbr2pgo.recorders.hardware import Choice
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software
from lbr2pgo.support.errors import InputError, MissingToolError, OutputError

pytestmark = pytest.mark.slow


def profile_of(name: str) -> SampleProfile:
    profile = held(Path(f"work/app.{name}"))
    assert isinstance(profile, SampleProfile)
    return profile


def test_both_builds_are_recorded_and_their_profiles_added(loop: MakeLoop, said: list[str]) -> None:
    loop(training_flags=("-O1",), both=True, last="rebuild").run()
    assert steps(said) == [
        "Build without a profile", "Build what is to be recorded", "Train", "Train",
        "Convert for the compiler", "Convert for the compiler", "Build with the profile",
    ]  # fmt: skip
    assert is_recorded(Image.open("work/app.training"))
    assert is_recorded(Image.open("work/app.before"), "work/app.plain.perf.data")
    merged, first, second = map(profile_of, ("prof", "perf.prof", "plain.perf.prof"))
    for name in ("main", "run"):
        totals = [each.functions[name].total for each in (merged, first, second)]
        assert totals[0] == totals[1] + totals[2] > max(totals[1:])


def test_a_second_generation_is_of_the_build_with_the_first_profile(
    loop: MakeLoop, said: list[str]
) -> None:
    loop(again=True, last="rebuild").run()
    first, before = profile_of("prof"), Image.open("work/app.after")
    said.clear()
    plain, rebuilt = loop(again=True, first="again").run()
    assert steps(said) == [
        "Train", "Convert for the compiler", "Build with the profile", "Measure",
    ]  # fmt: skip
    assert is_recorded(before, "work/app.second.perf.data")
    assert profile_of("prof").functions.keys() == first.functions.keys()
    assert profile_of("prof").functions["run"].body != first.functions["run"].body
    assert rebuilt.counted.totals.taken < plain.counted.totals.taken


def test_flags_for_the_profile_reach_that_build_alone(loop: MakeLoop, said: list[str]) -> None:
    flag = "-mllvm=-profile-summary-cutoff-cold=999900"
    loop(training_flags=("-O1",), profile_flags=(flag,), last="rebuild").run()
    builds = [line for line in said if "CFLAGS=" in line]
    assert [flag in line for line in builds] == [False, False, True]


@pytest.fixture
def recorded_with_chains(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A machine with hardware, which the software LBR stands for; whether it was asked for them."""
    asked: list[bool] = []

    def record_hardware(_machine: object, options: RecordOptions, watch: object) -> int:
        asked.append(options.call_graph)
        return record_software(options).exit_code

    monkeypatch.setattr(module, "choose_recorder", lambda *_: Choice(True, "this machine has LBR"))
    monkeypatch.setattr(module, "record_hardware", record_hardware)
    return asked


CONTEXTS = Training(("./app 1",), 1009, False, call_graph=True)


def test_hardware_tells_contexts_of_a_build_with_frame_pointers(
    loop: MakeLoop, said: list[str], recorded_with_chains: list[bool]
) -> None:
    loop(training_flags=("-O1",), train=CONTEXTS, last="convert").run()
    assert recorded_with_chains == [True]
    (built,) = (line for line in said if " -O1" in line)
    assert "-fno-omit-frame-pointer" in built
    assert any(each.attributes for each in profile_of("prof").functions.values())


def test_hardware_tells_none_of_a_build_that_is_shipped(
    loop: MakeLoop, said: list[str], recorded_with_chains: list[bool]
) -> None:
    failing = f'case "$CFLAGS" in *-O1*) exit 1;; esac; {BUILD}'
    loop(training_flags=("-O1",), train=CONTEXTS, build=failing, last="convert").run()
    assert recorded_with_chains == [False]
    assert any("records no call chains, for which this build lacks" in line for line in said)
    assert not any(each.attributes for each in profile_of("prof").functions.values())


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"both": True}, "--both: there is no training build"),
        ({"both": True, "training_flags": ("-O1",), "profile": Path("x")}, "--both"),
        ({"stable": True, "profile": Path("x")}, "--stable: nothing is recorded"),
        ({"stable": True, "compiler": "gcc"}, "gcc can do nothing with --stable"),
        ({"stable": True, "both": True, "training_flags": ("-O1",)}, "--stable: a merged profile"),
        ({"provenance": True, "both": True, "training_flags": ("-O1",)}, "--provenance: a merged"),
        ({"again": True, "profile": Path("x")}, "--again: nothing is recorded"),
        ({"again": True, "train": Training(("./app",), 1, True, True)}, "--again: contexts"),
        ({"cargo": True, "profile_flags": ("-O1",)}, "rustc can do nothing with --profile-flags"),
    ],
)
def test_what_makes_no_sense_is_refused(
    loop: MakeLoop, changes: dict[str, object], why: str
) -> None:
    with pytest.raises(InputError, match=why):
        loop(**changes)


SOURCE = "int main(int argc, char **argv) { int s = 0; while (argc--) s += argc; return s > 9; }"


def trained(*commands: str) -> Training:
    return Training(commands, None, emulate=False)


@pytest.fixture
def place(
    tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Path]:
    """Compile the program that counts; gives the directory of its counts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LLVM_PROFDATA", raising=False)
    clang = tool("clang-22")

    def compiled(flags: str) -> Path:
        Path("a.c").write_text(SOURCE)
        subprocess.run([clang, "-O2", *flags.split(), "a.c", "-o", "app"], check=True)
        return Path("raw")

    return compiled


def test_runs_of_several_commands_add_up_and_earlier_ones_are_forgotten(
    place: Callable[[str], Path], tool: Callable[[str], str]
) -> None:
    raw, said = place("-fprofile-generate=raw"), list[str]()
    subprocess.run(["./app", "an", "earlier", "one"], check=True)
    count_in_program(trained("./app 1 2", "./app 1"), raw, said.append)
    merge_counts(raw, Path("app.profdata"), said.append)
    shown = subprocess.run(
        [tool("llvm-profdata-22"), "show", "--all-functions", "--counts", "app.profdata"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert "Block counts: [5, 2]" in shown
    assert said[:2] == ["   ./app 1 2", "   ./app 1"]
    assert said[2].endswith("merge -o app.profdata raw")


def test_of_several_tools_that_one_is_taken_which_reads_the_counts(
    place: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = place("-fprofile-generate=raw")
    count_in_program(trained("./app"), raw, print)
    other = tmp_path / "bin" / "llvm-profdata"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho of another version >&2; exit 1\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{other.parent}:{os.environ['PATH']}")
    said = list[str]()
    merge_counts(raw, Path("app.profdata"), said.append)
    assert Path("app.profdata").stat().st_size > 0
    assert str(other) not in said[0]


def test_a_run_that_fails_or_does_not_count_is_told(place: Callable[[str], Path]) -> None:
    raw = place("")
    with pytest.raises(InputError, match="has written no counts"):
        count_in_program(trained("./app"), raw, print)
    with pytest.raises(InputError, match="failed with exit code 1") as caught:
        count_in_program(trained("./app", "./app 1 2 3 4 5 6"), raw, print)
    assert caught.value.where == "./app 1 2 3 4 5 6"
    with pytest.raises(InputError, match="has written no counts"):
        count_in_program(replace(trained("./app 1 2 3 4 5 6"), any_status=True), raw, print)


def test_counts_that_no_tool_reads_are_told_with_what_it_said(
    place: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = place("")
    raw.mkdir()
    (raw / "broken.profraw").write_bytes(b"no counts")
    with pytest.raises(OutputError, match=r"could not add the counts up: .*raw"):
        merge_counts(raw, Path("app.profdata"), print)
    monkeypatch.setenv("LLVM_PROFDATA", "no-such-tool")
    with pytest.raises(MissingToolError, match="llvm-profdata is not installed"):
        merge_counts(raw, Path("app.profdata"), print)


def test_a_profile_to_be_committed_has_its_functions_by_name(loop: MakeLoop) -> None:
    """And can be proved."""
    loop(stable=True, provenance=True, last="convert").run()
    assert (
        why_not_verified(Path("work/app.prof"), Path("app"), [Path("work/app.perf.data")]) is None
    )
    lines = Path("work/app.prof").read_text().splitlines()
    names = [line.split(":")[0] for line in lines if not line.startswith(" ")]
    assert len(names) > 3
    assert names == sorted(names)
