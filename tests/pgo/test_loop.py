from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from builders.loops import BUILD, MakeLoop, is_recorded, steps
from builders.outputs import held
from builders.sample_profiles import has_marks

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.pgo.built_code import same_code
from lbr2pgo.pgo.goal import GOALS
from lbr2pgo.pgo.loop import Loop
from lbr2pgo.pgo.steps import NoProbesError
from lbr2pgo.pgo.training import Training
from lbr2pgo.pgo.verdict import verdict
from lbr2pgo.profiles.afdo import afdo
from lbr2pgo.profiles.afdo.afdo import GccProfile
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.registry import output
from lbr2pgo.program.block_map import has_block_map
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.program import Program
from lbr2pgo.program.pseudo_probes import has_probes
from lbr2pgo.sources.perf_data.reader import PerfData
from lbr2pgo.support.errors import InputError, MissingToolError

TESTBINS = Path(__file__).parents[2] / "testbins"


def test_the_whole_loop_says_each_step_and_measures_each_build(
    loop: MakeLoop, said: list[str], tool: Callable[[str], str]
) -> None:
    tool("llvm-bolt-22")
    made = loop(bolt=True)
    measured = made.run()
    told = "Keep work/app.fdata: llvm-bolt reads it, for this very code: record anew once that has "
    assert [any(told in line for line in each.keep) for each in made.builds] == [False, False, True]
    assert steps(said) == [
        "Build what is to be recorded", "Train", "Convert for the compiler",
        "Build with the profile", "Train", "Convert for BOLT", "Optimise after the link", "Measure",
    ]  # fmt: skip
    assert [each.name for each in measured] == ["work/app.before", "app", "app.bolt"]
    assert len({each.counted.output for each in measured}) == 1
    plain, rebuilt, _ = (each.counted.totals for each in measured)
    assert rebuilt.taken < plain.taken
    files = {path.name for path in Path("work").iterdir()}
    endings = ("before", "perf.data", "prof", "after", "bolt.perf.data", "fdata", "build.log",
               "commands.sh")  # fmt: skip
    assert files == {f"app.{ending}" for ending in endings}
    assert {path.name for path in Path().iterdir()} == {"interp.c", "app", "app.bolt", "work"}


def test_each_command_that_is_said_runs_by_itself(loop: MakeLoop, said: list[str]) -> None:
    build = f"echo compiling && {BUILD}"
    loop(build=build, training_flags=("-O1",), probes=True, last="rebuild").run()
    functions = held(Path("work/app.prof")).functions.keys()
    commands = [line for line in said if line.startswith(("   CFLAGS=", "   cp ", "   lbr2pgo "))]
    assert len(commands) == 7
    script = Path("work/app.commands.sh").read_text().splitlines()
    assert [line for line in script if line[0] != "#"] == [each.strip() for each in commands]
    for name in ("app", "work/app.perf.data", "work/app.prof"):
        Path(name).unlink()
    for command in commands:
        own = f"   {shlex.quote(sys.executable)} -m lbr2pgo "
        text = command.replace("   lbr2pgo ", own)
        subprocess.run(text, shell=True, check=True, stdout=subprocess.DEVNULL)
    # Not the very same: variables that a shell sets move samples a little.
    assert held(Path("work/app.prof")).functions.keys() == functions
    assert has_probes(Image.open("app"))
    assert not same_code(Path("app"), Path("work/app.before"))


@pytest.mark.parametrize("commands", [("./app 2",), ("./app 1", "./app 2")])
def test_commands_are_trained_with_once(
    commands: tuple[str, ...], loop: MakeLoop, said: list[str]
) -> None:
    loop(train=Training(commands, None, True)).run()
    assert steps(said).count("Train") == 1
    assert any("samples for each location" in line and "enough" in line for line in said)


def test_a_period_that_was_asked_for_stays(loop: MakeLoop, said: list[str]) -> None:
    loop(train=Training(("./app 2",), 10007, True)).run()
    assert steps(said).count("Train") == 1
    assert any("times more would do better" in line for line in said)


def test_probes_are_in_both_builds_and_in_the_profile(loop: MakeLoop) -> None:
    plain, rebuilt = (each.counted.totals for each in loop(probes=True).run())
    assert held(Path("work/app.prof")).is_probe_based
    assert has_probes(Image.open("work/app.marked"))
    assert has_probes(Image.open("app"))
    assert rebuilt.taken < plain.taken


RISCV64 = BUILD.replace("-22 ", "-22 --target=riscv64-linux-gnu ")


@pytest.mark.parametrize("build", [RISCV64, RISCV64.replace("$CFLAGS", "-O2")])
def test_what_the_linker_relaxes_is_recorded_unrelaxed_and_loses_its_probes(
    build: str, loop: MakeLoop, said: list[str], tool: Callable[[str], str]
) -> None:
    tool("qemu-riscv64")
    by_contexts = Training(("./app 2",), 1009, True, call_graph=True)
    asked: dict[str, Any] = {"build": build, "probes": True, "train": by_contexts}
    loop(**asked, training_flags=("-O1",), last="convert").run()
    assert [line for line in said if "-mno-relax" in line and "for what is recorded" in line]
    loop(**asked, training_flags=("-O1",), first="rebuild", last="rebuild").run()
    assert held(Path("work/app.prof")).is_probe_based
    assert has_probes(Image.open("work/app.training"))
    assert not has_probes(Image.open("app"))
    assert not same_code(Path("app"), Path("work/app.before"))
    assert "-mno-relax" not in said[-1]


SPLIT = BUILD.replace("-22 ", "-22 -fbasic-block-sections=all ")


@pytest.mark.parametrize("build", [SPLIT, SPLIT.replace("$CFLAGS", "-O2")])
def test_where_clang_places_no_probes_lines_do_unless_they_were_asked_for(
    build: str, loop: MakeLoop, said: list[str]
) -> None:
    by_contexts = Training(("./app 2",), 1009, True, call_graph=True)
    asked: dict[str, Any] = {"build": build, "probes": True, "train": by_contexts}
    with pytest.raises(NoProbesError, match=r"no pseudo probes .* RISC-V\nGive --lines"):
        loop(**asked).run()
    loop(**asked, or_lines=True, last="convert").run()
    assert [line for line in said if "goes on by lines" in line]
    loop(**asked, or_lines=True, first="rebuild", last="rebuild").run()
    assert not held(Path("work/app.prof")).is_probe_based
    assert not Path("work/app.marked").exists()
    assert not same_code(Path("app"), Path("work/app.before"))


@pytest.mark.parametrize("training_flags", [(), ("-O1",)], ids=["shipped", "training"])
def test_what_is_measured_against_is_the_plain_build(
    loop: MakeLoop, said: list[str], training_flags: tuple[str, ...]
) -> None:
    made = loop(probes=True, training_flags=training_flags)
    plain, _ = made.run()
    assert plain.name == "work/app.before"
    assert not has_probes(Image.open("work/app.before"))
    assert not any("profiling" in each.partition("-g")[2].replace("-fdebug-info-for-profiling", "")
                   for each in made.builds[0].keep)  # fmt: skip
    subprocess.run("clang-22 -O2 interp.c -fuse-ld=lld -o alone", shell=True, check=True)
    assert same_code(Path("work/app.before"), Path("alone"))
    builds = [line for line in said if "CFLAGS=" in line]
    assert len(builds) == 3
    assert sum("pseudo-probe" not in line for line in builds) == 1
    Path("work/app.before").unlink()
    said.clear()
    again, _ = loop(probes=True, training_flags=training_flags, first="measure").run()
    assert steps(said) == ["Build plainly, to compare with", "Measure"]
    assert again.counted == plain.counted


@pytest.mark.parametrize("training_flags", [(), ("-O1",)], ids=["shipped", "training"])
def test_a_build_without_the_probes_that_were_asked_for_is_refused(
    loop: MakeLoop, tool: Callable[[str], str], training_flags: tuple[str, ...]
) -> None:
    build = f"{tool('clang-22')} -O2 -g interp.c -o app"
    with pytest.raises(InputError, match="has no pseudo probes"):
        loop(probes=True, build=build, training_flags=training_flags).run()


def test_a_training_build_is_recorded_and_only_that(loop: MakeLoop, said: list[str]) -> None:
    plain, rebuilt = (each.counted.totals for each in loop(training_flags=("-O1",)).run())
    assert steps(said) == [
        "Build without a profile", "Build what is to be recorded", "Train",
        "Convert for the compiler", "Build with the profile", "Measure",
    ]  # fmt: skip
    recorded, *others = (Image.open(f"work/app.{name}") for name in ("training", "before", "after"))
    assert is_recorded(recorded)
    assert not any(map(is_recorded, others))
    assert rebuilt.taken < plain.taken
    assert " -O1" not in next(line for line in said if "-fprofile-sample-use" in line)


def test_a_training_that_ends_with_another_status_names_its_way_out(loop: MakeLoop) -> None:
    training = Training(("./app 2; exit 3",), 1009, True)
    with pytest.raises(InputError, match="exit code 3") as caught:
        loop(train=training).run()
    assert "--any-status" in str(caught.value.cure)
    plain, rebuilt = (each.counted for each in loop(train=replace(training, any_status=True)).run())
    assert (plain.exit_code, rebuilt.exit_code) == (3, 3)
    assert rebuilt.totals.taken < plain.totals.taken


def test_a_measured_run_that_fails_is_no_verdict(loop: MakeLoop) -> None:
    with pytest.raises(InputError, match="the measured run failed with exit code 3") as caught:
        loop(measure="./app 2; exit 3").run()
    assert "--any-status" in str(caught.value.cure)
    assert Path("work/app.after").exists()


READS = """
#include <stdio.h>
int main(void) {
  unsigned long sum = 0, words = 0;
  for (int c; (c = getchar()) != EOF;) { sum = sum * 31 + c; words += c == ' '; }
  printf("%lu\\n", sum);
  return words != 4000;
}
"""


@pytest.mark.parametrize("how", [{}, {"instrumented": True}], ids=["samples", "counters"])
def test_every_run_reads_what_the_training_read(
    loop: MakeLoop, said: list[str], how: dict[str, bool]
) -> None:
    Path("interp.c").write_text(READS)
    Path("in").write_text("word " * 4000)
    training = Training(("./app",), 499, True, input=Path("in"))
    plain, rebuilt = loop(train=training, training_flags=("-O1",), **how).run()
    assert (plain.counted.exit_code, plain.counted.output) == (0, rebuilt.counted.output)
    assert how or any(line.endswith(" -- ./app < in") for line in said)


@pytest.mark.parametrize(("probes", "recorded"), [(False, "before"), (True, "marked")])
def test_a_training_build_that_behaves_otherwise_is_left_out(
    loop: MakeLoop, said: list[str], probes: bool, recorded: str
) -> None:
    Path("interp.c").write_text(
        '#include <stdio.h>\nint main(void) { printf("%d\\n", LEVEL); return 0; }\n'
    )
    loop(build=f"{BUILD} -DLEVEL=${{CFLAGS##*-O}}", training_flags=("-O1",), last="train",
         probes=probes, train=Training(("./app",), 1009, True)).run()  # fmt: skip
    (note,) = (line for line in said if "Note" in line)
    assert "./app: it does not do the same as the build without a profile" in note
    image = Image.open(f"work/app.{recorded}")
    assert is_recorded(image)
    assert has_probes(image) == probes


def test_contexts_are_recorded_and_in_the_profile_where_they_are_asked_for(loop: MakeLoop) -> None:
    plain, rebuilt = loop(train=Training(("./app 2",), 1009, True, call_graph=True)).run()
    assert has_marks(held(Path("work/app.prof")))
    assert rebuilt.counted.totals.taken < plain.counted.totals.taken


ALONE = "__attribute__((noinline)) int"
UNRUN = f"""
{ALONE} idle(int n) {{ return n * n; }}
{ALONE} deep(int n) {{ return idle(n) * 2; }}
{ALONE} seldom(int n) {{ return deep(n) * 3; }}
"""
RARE = "\n    if (argc > 99)\n        return seldom(argc);\n"
UNKNOWN = "-1"


@pytest.mark.parametrize(
    ("asked", "idle", "seldom"),
    [
        ({}, "0", UNKNOWN),
        ({"goal": GOALS["balanced"]}, "0", UNKNOWN),
        ({"goal": GOALS["size"]}, "0", "0"),
        ({"stable": True}, UNKNOWN, UNKNOWN),  # text, which holds no list of symbols
    ],
)
def test_the_compiler_is_told_what_never_ran_but_not_of_what_is_new(
    loop: MakeLoop, asked: dict[str, Any], idle: str, seldom: str
) -> None:
    source = Path("interp.c")
    main = "int main(int argc, char **argv) {\n"
    assert main in source.read_text()
    source.write_text(source.read_text().replace(main, f"int seldom(int);\n{main}{RARE}") + UNRUN)
    loop(**asked, last="convert").run()
    source.write_text(source.read_text() + "\nint later(int n) { return n * n; }\n")
    words = "clang-22 -O2 -g -fdebug-info-for-profiling -fprofile-sample-use=work/app.prof"
    subprocess.run([*words.split(), "-S", "-emit-llvm", source], check=True)
    code = Path("interp.ll").read_text()
    counts = dict(re.findall(r'^(!\d+) = !\{!"function_entry_count", i64 (-?\d+)\}', code, re.M))
    found = dict(re.findall(r"^define .* @(\w+)\(.* !prof (!\d+) ", code, re.M))
    assert counts[found["idle"]] == idle
    assert counts[found["seldom"]] == seldom
    assert counts[found["later"]] == UNKNOWN
    assert int(counts[found["main"]]) > 0


def test_contexts_are_of_no_use_to_bolt(loop: MakeLoop, tool: Callable[[str], str]) -> None:
    tool("llvm-bolt-22")
    loop(bolt=True, train=Training(("./app 1",), 1009, True, call_graph=True)).run()
    first, second = (PerfData(Path(f"work/app.{name}")) for name in ("perf.data", "bolt.perf.data"))
    assert first.info.has_call_chains
    assert not second.info.has_call_chains


def test_bolt_takes_a_stored_profile_of_an_older_build(
    loop: MakeLoop, said: list[str], tool: Callable[[str], str]
) -> None:
    tool("llvm-bolt-22")
    loop(last="train").run()
    recording, yaml = Path("work/app.perf.data"), Path("app.yaml")
    outputs = (output("bolt_yaml", yaml),)
    convert(ConvertOptions((recording,), Path("work/app.before"), outputs=outputs))
    said.clear()
    stored = {"train": None, "profile": Path("none.prof"), "measure": "./app 1"}
    made = loop(bolt=True, bolt_profile=yaml, **stored)
    measured = made.run()
    assert made.builds[-1].keep[-1] == "Keep app.yaml: llvm-bolt reads it."
    assert [each.name for each in measured] == ["work/app.before", "app.bolt"]
    assert "Train" not in steps(said)
    assert any("app.yaml" in line and "-infer-stale-profile" in line for line in said)
    assert any("functions in the binary" in line for line in said)
    with pytest.raises(InputError, match="--bolt-profile is for llvm-bolt"):
        loop(bolt_profile=yaml)


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


def test_exact_counts_are_the_profile_for_compiler_and_bolt(
    loop: MakeLoop, said: list[str], tool: Callable[[str], str]
) -> None:
    tool("llvm-bolt-22")
    exact = Training(("./app 1", "./app 2"), None, True, exact=True)
    plain, rebuilt, laid_out = (t.counted.totals for t in loop(train=exact, bolt=True).run())
    assert rebuilt.taken < plain.taken
    assert laid_out.taken < plain.taken
    assert said.count("   every branch of the run") == 2
    assert steps(said).count("Train") == 2
    made = {path.name for path in Path("work").iterdir()}
    assert {"app.perf.exact", "2.app.perf.exact", "app.bolt.perf.exact"} <= made


@pytest.mark.parametrize("probes", [False, True], ids=["lines", "probes"])
def test_propeller_lays_out_what_the_profile_was_compiled_into(
    loop: MakeLoop, said: list[str], probes: bool
) -> None:
    made = loop(propeller=True, probes=probes)
    measured = made.run()
    assert steps(said) == [
        "Build what is to be recorded", "Train", "Convert for the compiler",
        "Build with the profile", "Train", "Convert for Propeller", "Build with the layout",
        "Measure",
    ]  # fmt: skip
    assert [each.name for each in measured] == ["work/app.before", "work/app.after", "app"]
    assert len({each.counted.output for each in measured}) == 1
    assert not has_block_map(Image.open("work/app.before"))
    plain, rebuilt, laid_out = (each.counted.totals.taken for each in measured)
    assert laid_out <= rebuilt < plain
    assert not [line for line in said if "Warning" in line]
    assert [path.suffix for path in made.builds[-1].reads] == [
        ".prof", ".propeller-cc", ".propeller-ld"
    ]  # fmt: skip
    assert Path("app").read_bytes() == Path("work/app.propelled").read_bytes()


def test_propeller_clones_paths_where_it_is_asked_to(loop: MakeLoop, said: list[str]) -> None:
    measured = loop(propeller=True, clone_paths=True).run()
    clusters = Path("work/app.propeller-cc").read_text().splitlines()
    assert [line for line in clusters if line.startswith("p ")]
    assert len({each.counted.output for each in measured}) == 1
    plain, _, laid_out = (each.counted.totals.taken for each in measured)
    assert laid_out < plain
    assert not [line for line in said if "Warning" in line]


@pytest.mark.parametrize("exact", [False, True])
def test_functions_are_ordered_by_the_start(loop: MakeLoop, said: list[str], exact: bool) -> None:
    train = Training(("./app 1", "./app 2"), None if exact else 499, True, exact=exact)
    made = loop(startup=True, train=train)
    measured = made.run()
    assert steps(said) == [
        "Build what is to be recorded", "Train", "Convert for the compiler",
        "Build with the profile", "Train", "Convert for the linker",
        "Build in the order of the start", "Train", "Measure",
    ]  # fmt: skip
    assert [each.name for each in measured] == ["work/app.before", "work/app.after", "app"]
    assert Path("app").read_bytes() == Path("work/app.ordered").read_bytes()
    order, opened = Path("work/app.startup"), Program.open("app")
    source = Path("interp.c").read_text()
    names = [name for name in order.read_text().splitlines()[1:] if f" {name}(" in source]
    places = [int(opened.address_of(name) or 0) for name in names]
    assert len(places) > 3
    assert all(a < b for a, b in pairwise(places))
    (final,) = made.builds[-1:]
    assert [path.suffix for path in final.reads] == [".prof", ".startup"]
    assert re.match(r"Its start touches \d+ pages? of its code, \d+ without order\.", final.keep[0])
    told = [*verdict(made.builds, measured, made.options)]
    assert told[0].startswith("Verdict: app ")
    assert "Ship app." in told
    assert [line for line in said if " --startup -o " in line]


@pytest.mark.parametrize("lto", ["full", "thin"])
def test_propeller_reaches_the_code_that_lto_makes(loop: MakeLoop, lto: str) -> None:
    build = BUILD.replace("interp.c", f"-flto={lto} interp.c")
    measured = loop(propeller=True, build=build, train=Training(("./app 1",), 499, True)).run()
    _, rebuilt, laid_out = (each.counted.totals.taken for each in measured)
    assert laid_out <= rebuilt
    assert "run.cold" in Program.open(Path("app")).symbols.names


def test_counters_in_the_program_may_take_the_place_of_samples(
    loop: MakeLoop, said: list[str], tool: Callable[[str], str]
) -> None:
    tool("llvm-profdata-22")
    made = loop(
        instrumented=True, propeller=True, train=Training(("./app 1", "./app 2"), 499, True)
    )
    plain, rebuilt, laid_out = (each.counted.totals.taken for each in made.run())
    assert steps(said) == [
        "Build without a profile", "Build what is to be recorded", "Train",
        "Convert for the compiler", "Build with the profile", "Train", "Convert for Propeller",
        "Build with the layout", "Measure",
    ]  # fmt: skip
    assert laid_out <= rebuilt < plain
    assert made.builds[1].reads == (Path("work/app.profdata"),)


def test_without_a_build_that_counts_there_is_nothing_to_go_on_with(loop: MakeLoop) -> None:
    refuses = f'case "$CFLAGS" in *generate*) exit 3; esac; {BUILD}'
    with pytest.raises(InputError, match="the build failed with exit code 3"):
        loop(instrumented=True, build=refuses).run()


def test_a_layout_of_blocks_that_came_out_otherwise_is_refused(loop: MakeLoop) -> None:
    other = "$(test -e work/app.propeller-cc && echo -fno-inline -O1)"
    with pytest.raises(InputError, match="by numbers of other blocks: 3 of 5 functions"):
        loop(propeller=True, build=BUILD.replace("$CFLAGS", f"$CFLAGS {other}")).run()


@pytest.mark.parametrize("layout", ["bolt", "propeller"])
def test_what_is_recorded_poorly_is_shipped_without_a_layout(
    layout: str, loop: MakeLoop, said: list[str], tool: Callable[[str], str]
) -> None:
    tool("llvm-bolt-22")
    asked: dict[str, Any] = {layout: True, "measure": "./app 1"}
    assert len(loop(**asked).run()) == 3
    said.clear()
    # A single sample, beside the layout of the loop before.
    one = Training(("./app 2",), 500_009, True)
    made = loop(**asked, train=one, first=layout)
    assert [each.name for each in made.run()] == ["work/app.before", "app"]
    assert [each.path for each in made.builds] == [Path("work/app.before"), Path("app")]
    assert Path("app").read_bytes() == Path("work/app.after").read_bytes()
    assert steps(said) == ["Train", "Measure"]
    (warning,) = (line for line in said if "Warning" in line)
    assert warning.startswith("   Warning: not laid out, the recording is of little use: at least ")
    assert warning.endswith(" times as many samples.")


def test_a_build_without_the_map_that_propeller_needs_is_refused(
    loop: MakeLoop, tool: Callable[[str], str]
) -> None:
    with pytest.raises(InputError, match="has no block map"):
        loop(propeller=True, build=f"{tool('clang-22')} -O2 -g interp.c -o app").run()


GCC_BUILD = "gcc -Wall -Werror $CFLAGS interp.c $LDFLAGS -o app"


def test_gcc_is_given_a_profile_of_its_own(
    loop: MakeLoop, said: list[str], tool: Callable[[str], str]
) -> None:
    tool("gcc")
    plain, rebuilt = loop(compiler="gcc", build=GCC_BUILD).run()
    assert steps(said)[2:4] == ["Convert for the compiler", "Build with the profile"]
    assert isinstance(held(Path("work/app.afdo")), GccProfile)
    assert "-fauto-profile=" in said[-3]
    assert plain.counted.output == rebuilt.counted.output
    assert plain.counted.totals != rebuilt.counted.totals


def test_a_stored_profile_for_gcc_is_judged_before_it_is_used(
    loop: MakeLoop, said: list[str], tool: Callable[[str], str]
) -> None:
    tool("gcc")
    gcc = {"compiler": "gcc", "build": GCC_BUILD}
    loop(**gcc, last="convert").run()
    stored = Path("work/app.afdo").rename("stored.afdo")
    said.clear()
    loop(**gcc, train=None, profile=stored).run()
    assert steps(said)[1:3] == [f"Look at the profile {stored}", "Build with the profile"]
    other = GccProfile(SampleProfile())
    other.samples.function("elsewhere").add_body((1, 0), 100)
    other.samples.function("elsewhere").total = 100
    afdo.write(other, stored)
    with pytest.raises(InputError, match="another program: 100% of its counts"):
        loop(**gcc, train=None, profile=stored).run()
    with pytest.raises(InputError, match="no sample profile for this compiler"):
        loop(train=None, profile=stored).run()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"compiler": "gcc", "probes": True}, "gcc can do nothing with --probes"),
        ({"compiler": "gcc", "propeller": True}, "gcc can do nothing with --propeller"),
        ({"cargo": True, "propeller": True}, "rustc can do nothing with --propeller"),
        ({"cargo": True, "compiler": "gcc"}, "rustc can do nothing with --compiler"),
        ({"bolt": True, "propeller": True}, "Propeller and BOLT do the same work"),
        ({"bolt": True, "startup": True}, "--startup and --bolt each order all functions"),
        ({"clone_paths": True}, "--propeller-clone-paths is for Propeller's layout"),
        ({"propeller": True, "startup": True}, "--startup and --propeller each order all"),
        ({"cargo": True, "startup": True}, "rustc can do nothing with --startup"),
        (
            {"startup": True, "train": None, "profile": Path("p")},
            "--startup: there is no training command",
        ),
        ({"instrumented": True, "probes": True}, "--probes is for profiles of samples"),
        ({"instrumented": True, "compiler": "gcc"}, "gcc can do nothing with --instrumented"),
        ({"again": True, "propeller": True, "probes": True}, "what Propeller lays out has no p"),
    ],
)
def test_what_does_not_go_together_is_refused(
    loop: MakeLoop, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        loop(**changes)


def test_exact_counts_and_contexts_exclude_each_other() -> None:
    with pytest.raises(InputError, match="contexts"):
        Training(("./app",), None, True, call_graph=True, exact=True)


def test_each_step_can_be_gone_through_alone(loop: MakeLoop, said: list[str]) -> None:
    whole = loop().run()
    profile, rebuilt = Path("work/app.prof").read_bytes(), Path("app").read_bytes()
    for step in ("train", "convert", "rebuild", "measure"):
        said.clear()
        measured = loop(first=step, last=step).run()
        assert len(steps(said)) == 1
    assert Path("work/app.prof").read_bytes() == profile
    assert Path("app").read_bytes() == rebuilt
    assert [each.counted for each in measured] == [each.counted for each in whole]


def test_a_step_whose_input_is_not_there_names_the_one_that_makes_it(loop: MakeLoop) -> None:
    for step in ("train", "rebuild", "measure"):
        with pytest.raises(InputError) as caught:
            loop(first=step).run()
        assert "--from-step build" in str(caught.value.cure)


def test_the_last_step_does_not_come_before_the_first(loop: MakeLoop) -> None:
    with pytest.raises(InputError, match="train comes before convert"):
        loop(first="convert", last="train")


LIBRARY = """
int work(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += i % 7 == 0 ? i : i % 3 ? 2 : i / 5;
    return sum;
}
"""
DRIVER = """
#include <stdio.h>
int work(int);
int main(void) { printf("%d\\n", work(300000)); }
"""


def test_a_shared_library_is_measured_in_its_place(loop: MakeLoop) -> None:
    Path("work.c").write_text(LIBRARY)
    Path("main.c").write_text(DRIVER)
    build = (
        "clang-22 $CFLAGS -fPIC -shared work.c $LDFLAGS -o libwork.so && "
        "{ test -e main || clang-22 main.c -L. -lwork -Wl,-rpath,. -o main; }"
    )
    library = {"binary": Path("libwork.so"), "train": Training(("./main",), 499, True)}
    plain, rebuilt = loop(build=build, **library).run()
    assert plain.name == "work/libwork.so.before"
    assert rebuilt.counted.totals != plain.counted.totals
    assert Path("libwork.so").read_bytes() == Path("work/libwork.so.after").read_bytes()


def test_steps_are_timed_where_that_is_asked_for(loop: MakeLoop) -> None:
    told: list[tuple[str, float, float | None]] = []
    Loop(loop(last="convert").options, lambda _: None, lambda *step: told.append(step)).run()
    titles, took, left = zip(*told, strict=True)
    assert titles[0] == "1. Build what is to be recorded"
    assert all(seconds > 0 for seconds in took)
    assert left == (None, 0, 0)  # before the training nobody knows how long that takes


def test_without_llvm_bolt_nothing_is_built_in_vain(
    loop: MakeLoop, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLVM_BOLT", "no-such-tool")
    with pytest.raises(MissingToolError, match="llvm-bolt is not installed"):
        loop(bolt=True).run()
    assert said == []


def test_a_loop_needs_a_training_command_or_a_profile(loop: MakeLoop) -> None:
    with pytest.raises(InputError, match="no training command"):
        loop(train=None)
    with pytest.raises(InputError, match="no training command"):
        loop(train=None, profile=Path("a.prof"), bolt=True)
