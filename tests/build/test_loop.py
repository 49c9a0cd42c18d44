from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lbr2pgo.build.loop import Loop, LoopOptions
from lbr2pgo.build.training import Training
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.probes import has_probes
from lbr2pgo.sources.perf_data.reader import PerfData
from lbr2pgo.support.errors import InputError, MissingToolError

TESTBINS = Path(__file__).parents[2] / "testbins"
BUILD = "clang-22 $CFLAGS interp.c -fuse-ld=lld $LDFLAGS -o app"

MakeLoop = Callable[..., Loop]


@pytest.fixture
def said() -> list[str]:
    """What the loop has said."""
    return []


@pytest.fixture
def loop(
    tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> MakeLoop:
    """`loop(bolt=True, …)`: over the interpreter, in a directory of its own."""
    tool("clang-22"), tool("ld.lld-22"), tool("qemu-x86_64")
    shutil.copy(TESTBINS / "src" / "interp.c", tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("CFLAGS", "CXXFLAGS", "LDFLAGS"):
        monkeypatch.delenv(name, raising=False)

    def make(**changes: Any) -> Loop:
        plain: dict[str, Any] = {
            "build": BUILD, "binary": Path("app"), "train": Training("./app 2", 1009, True),
            "profile": None, "probes": False, "bolt": False, "measure": None, "runs": 0,
            "work": Path("work"),
        }  # fmt: skip
        return Loop(LoopOptions(**{**plain, **changes}), said.append)

    return make


def steps(said: list[str]) -> list[str]:
    return [line.split(". ", 1)[1] for line in said if line[0].isdigit()]


def test_the_whole_loop_says_each_step_and_measures_each_build(
    loop: MakeLoop, said: list[str], tool: Callable[[str], str]
) -> None:
    tool("llvm-bolt-22")
    measured = loop(bolt=True).run()
    assert steps(said) == [
        "Build what is to be recorded", "Train", "Convert for the compiler",
        "Build with the profile", "Train", "Convert for BOLT", "Optimise after the link", "Measure",
    ]  # fmt: skip
    assert [each.name for each in measured] == ["work/app.before", "app", "app.bolt"]
    assert len({each.counted.output for each in measured}) == 1
    plain, rebuilt, _ = (each.counted.totals for each in measured)
    assert rebuilt.taken < plain.taken
    made = {path.name for path in Path("work").iterdir()}
    assert made == {"app.before", "app.perf.data", "app.prof", "app.bolt.perf.data", "app.fdata"}


def test_a_thin_profile_is_recorded_again_with_a_shorter_period(
    loop: MakeLoop, said: list[str]
) -> None:
    loop(train=Training("./app 2", None, True)).run()
    assert steps(said)[:6] == [
        "Build what is to be recorded", "Train", "Convert for the compiler", "Train",
        "Convert for the compiler", "Build with the profile",
    ]  # fmt: skip
    densities = [float(n) for n in re.findall(r"Note: \S+: ([0-9.]+) samples for each location",
                                              "\n".join(said))]  # fmt: skip
    assert len(densities) == 2
    assert densities[0] < 50 <= densities[1]
    assert any("trains again, with a period of" in line for line in said)


def test_a_period_that_was_asked_for_stays(loop: MakeLoop, said: list[str]) -> None:
    loop(train=Training("./app 2", 10007, True)).run()
    assert steps(said).count("Train") == 1
    assert any("times more would do better" in line for line in said)


def test_probes_are_in_both_builds_and_in_the_profile(loop: MakeLoop) -> None:
    plain, rebuilt = (each.counted.totals for each in loop(probes=True).run())
    assert "!CFGChecksum" in Path("work/app.prof").read_text()
    assert has_probes(Image.open("app"))
    assert rebuilt.taken < plain.taken


def test_a_build_without_the_probes_that_were_asked_for_is_refused(loop: MakeLoop) -> None:
    with pytest.raises(InputError, match="has no pseudo probes"):
        loop(probes=True, build="clang-22 -O2 -g interp.c -o app").run()


def test_contexts_are_recorded_and_in_the_profile_where_they_are_asked_for(loop: MakeLoop) -> None:
    plain, rebuilt = loop(train=Training("./app 2", 1009, True, call_graph=True)).run()
    assert "!Attributes" in Path("work/app.prof").read_text()
    assert rebuilt.counted.totals.taken < plain.counted.totals.taken


def test_contexts_are_of_no_use_to_bolt(loop: MakeLoop, tool: Callable[[str], str]) -> None:
    tool("llvm-bolt-22")
    loop(bolt=True, train=Training("./app 1", 1009, True, call_graph=True)).run()
    first, second = (PerfData(Path(f"work/app.{name}")) for name in ("perf.data", "bolt.perf.data"))
    assert first.info.has_call_chains
    assert not second.info.has_call_chains


def test_without_a_stored_profile_the_build_is_plain(loop: MakeLoop, said: list[str]) -> None:
    (measured,) = loop(train=None, profile=Path("none.prof"), measure="./app 1").run()
    assert measured.name == "work/app.before"
    (warning,) = (line for line in said if "Warning" in line)
    assert warning == "   Warning: there is no profile none.prof yet: this is a plain build."
    assert Path("app").read_bytes() == Path("work/app.before").read_bytes()


def test_a_stored_profile_serves_without_training(loop: MakeLoop, said: list[str]) -> None:
    stored = Path("stored.prof")
    stored.write_text("run:500:0\n 11: 500\nno_such_function:20:0\n 1: 20\n")
    assert loop(train=None, profile=stored).run() == []
    assert "is stale: work/app.before has no place for 3.85% of its counts" in "".join(said)
    assert steps(said)[1:] == [f"Look at the profile {stored}", "Build with the profile", "Measure"]
    assert said[-1].startswith("   Not measured")
    assert Path("app").read_bytes() != Path("work/app.before").read_bytes()


def test_a_stored_profile_of_another_program_is_refused(loop: MakeLoop) -> None:
    Path("other.prof").write_text("elsewhere:100:0\n 1: 100\nmain:10:0\n 1: 10\n")
    with pytest.raises(InputError, match="another program: 91% of its counts"):
        loop(train=None, profile=Path("other.prof")).run()


def test_a_build_that_ignores_the_flags_is_refused_before_training(
    loop: MakeLoop, said: list[str]
) -> None:
    with pytest.raises(InputError, match="did not take the flags"):
        loop(build="clang-22 -O2 interp.c -o app").run()
    assert steps(said) == ["Build what is to be recorded"]


def test_a_build_that_does_not_compile_anew_is_refused(loop: MakeLoop) -> None:
    with pytest.raises(InputError, match="did not compile it anew"):
        loop(build=f"test -e app || {BUILD}").run()


def test_without_llvm_bolt_nothing_is_built_in_vain(
    loop: MakeLoop, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLVM_BOLT", "no-such-tool")
    with pytest.raises(MissingToolError, match="llvm-bolt is not installed"):
        loop(bolt=True).run()
    assert said == []


def test_a_number_of_runs_that_gives_no_interval_is_refused_at_once(loop: MakeLoop) -> None:
    with pytest.raises(InputError, match="2 runs"):
        loop(runs=2)


def test_a_loop_needs_a_training_command_or_a_profile(loop: MakeLoop) -> None:
    with pytest.raises(InputError, match="no training command"):
        loop(train=None)
    with pytest.raises(InputError, match="no training command"):
        loop(train=None, profile=Path("a.prof"), bolt=True)
