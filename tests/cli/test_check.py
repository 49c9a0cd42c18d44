"""`lbr2pgo check` as CI would run it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from builders.binary_walks import walked
from builders.recordings import STATIC, STATIC_RECORDING, recorded

from lbr2pgo.program.program import Program
from lbr2pgo.sources.perf_data.reader import PerfData
from lbr2pgo.support.addresses import image_addresses

TESTBINS = Path(__file__).parents[2] / "testbins"
ELF = TESTBINS / "x86-64" / "interp.pie"
SHAPES = ELF.with_name("shapes.pie")
RECORDING = TESTBINS / "recordings" / "x86-64-interp.pie.perf.data"


@pytest.fixture
def profile(command, tmp_path):
    samples, branches = tmp_path / "samples.prof", tmp_path / "branches.fdata"
    done = command("convert", RECORDING, "--binary", ELF, "--llvm", samples, "--fdata", branches)
    assert done.code == 0
    return samples, branches


def measures(answer):
    return json.loads(answer.out)["measures"]


def test_without_gates_all_is_said_and_nothing_refused(command):
    answer = command("check", RECORDING, "--binary", ELF)
    assert answer.code == 0
    for name in ("density", "coverage", "conservation", "stale", "executed", "bias", "overlap"):
        assert name in answer.out


def test_a_recording_and_its_profiles_are_alike(command, profile):
    samples, branches = profile
    for old in (samples, branches, RECORDING):
        answer = command(
            "check", RECORDING, "--binary", ELF, "--against", old, "--format", "json",
            "--min-overlap", "0.999", "--min-density", "5", "--max-stale", "0",
        )  # fmt: skip
        assert answer.code == 0
        found = measures(answer)
        assert found["overlap"]["value"] == pytest.approx(1)
        assert found["density"]["passed"] is True
        assert found["coverage"]["passed"] is None


def test_bolt_s_yaml_is_judged_and_compared(command, profile, tool, tmp_path):
    tool("llvm-bolt-22")
    yaml = tmp_path / "app.yaml"
    assert command("convert", RECORDING, "--binary", ELF, "--bolt-yaml", yaml).code == 0
    answer = command("check", yaml, "--binary", ELF, "--max-stale", "0", "--against", yaml,
                     "--min-overlap", "1", "--format", "json")  # fmt: skip
    assert answer.code == 0
    part = measures(command("check", yaml, "--binary", ELF, "--against", profile[1],
                            "--format", "json"))  # fmt: skip
    assert 0.1 < part["overlap"]["value"] < 1, "of interp.c's jumps through tables BOLT knows none"


@pytest.mark.parametrize("gate", [("--min-density", "1000"), ("--min-coverage", "1")])
def test_a_failed_gate_is_exit_code_1(command, gate):
    answer = command("check", RECORDING, "--binary", ELF, *gate)
    assert answer.code == 1
    assert "failed" in answer.out
    answer = command("check", RECORDING, "--binary", ELF, *gate, "--format", "json")
    assert answer.code == 1
    assert json.loads(answer.out)["passed"] is False


def test_a_gate_that_cannot_be_measured_fails(command, profile):
    _, branches = profile
    answer = command("check", branches, "--binary", ELF, "--min-density", "0")
    assert answer.code == 1
    assert "unknown" in answer.out


def test_a_stale_profile_is_refused_and_its_functions_named(command, tmp_path):
    old = tmp_path / "old.prof"
    old.write_bytes(b"gone\x1b[31m:60:0\n 1: 50\n")
    answer = command("check", old, "--binary", ELF, "--max-stale", "0.1")
    assert answer.code == 1
    assert "\n  wrong " in answer.out
    assert r"gone\x1b[31m" in answer.out
    assert "\x1b" not in answer.out


@pytest.mark.parametrize("form", ["llvm", "fdata", "afdo", "bolt-yaml"])
def test_a_profile_of_another_program_is_refused_as_such(command, tool, tmp_path, form):
    if form == "bolt-yaml":
        tool("llvm-bolt-22")
    profile = tmp_path / form
    assert command("convert", RECORDING, "--binary", ELF, f"--{form}", profile).code == 0
    own = command("check", profile, "--binary", ELF)
    assert own.code == 0
    assert "another program" not in own.out
    words = ("check", profile, "--binary", SHAPES)
    answer = command(*words)
    assert answer.code == 1
    assert answer.out.startswith("Verdict: another program's profile.\n")
    answer = command(*words, "--format", "json")
    assert answer.code == 1
    told = json.loads(answer.out)
    assert (told["passed"], told["verdict"]) == (False, "another program's profile")
    answer = command(*words, "--format", "line")
    assert answer.code == 1
    assert answer.out.endswith("; refused: missing\n")
    allowed = command(*words, "--max-missing", "1")
    assert (allowed.code, allowed.out.splitlines()[0]) == (0, "Verdict: passed.")


@pytest.mark.parametrize(
    ("ending", "covered", "verdict"), [("perf.data", 0.5, "good"), ("exact.npz", 0.8, "good")]
)
def test_lines_without_counts_are_no_fault_of_a_profile(command, ending, covered, verdict):
    """A part of them never ran, as the exact counts show."""
    recording = RECORDING.with_name(f"x86-64-shapes.pie.{ending}")
    answer = command("check", recording, "--binary", SHAPES, "--format", "json")
    assert measures(answer)["coverage"]["value"] < covered
    assert json.loads(answer.out)["verdict"] == verdict


def test_a_profile_of_little_that_is_executed_is_warned_of(command, profile, tmp_path):
    """Left out is the function that runs for nine tenths of the time."""
    samples, branches = profile
    exact = RECORDING.with_name("x86-64-interp.pie.exact.npz")
    for whole, start in ((samples, "run:"), (branches, "1 run/")):
        part = tmp_path / "part"
        lines = whole.read_text().splitlines(keepends=True)
        kept, is_left_out = [], False
        for line in lines:
            is_left_out = line.startswith(start) or (is_left_out and line.startswith(" "))
            kept += [] if is_left_out or " run/" in line else [line]
        part.write_text("".join(kept))
        words = ("--binary", ELF, "--against", exact)
        answer = command("check", part, *words)
        assert re.search(r"of little use \d\.\d% of what the program executes", answer.out)
        assert "A layout by it can slow down the rest" in answer.out
        assert command("check", part, *words, "--min-executed", "0.5").code == 1
        answer = command("check", whole, *words, "--min-executed", "0.999")
        assert answer.code == 0
        assert "slow down" not in answer.out


def test_a_recording_of_few_samples_has_not_met_all_that_is_executed(command, tmp_path):
    """None of these functions is in two samples."""
    starts = {}
    (batch,) = PerfData(STATIC_RECORDING).batches()
    functions = Program.open(STATIC).functions.containing(image_addresses(batch.ip))
    for function, ip, at in zip(functions, batch.ip, batch.offsets[:-1].tolist(), strict=True):
        starts[int(function)] = (
            int(ip),
            [tuple(each) for each in batch.entries[at : at + 2].tolist()],
        )
    ips, stacks = zip(*starts.values(), strict=True)
    path = tmp_path / "perf.data"
    path.write_bytes(recorded(stacks, ips=ips))
    found = measures(command("check", path, "--binary", STATIC, "--format", "json"))
    assert found["executed"]["value"] < 1


@pytest.mark.parametrize(
    "words",
    [
        ("--min-overlap", "0.5"),
        ("--min-overlap", "1.5", "--against", RECORDING),
        ("--min-density", "-1"),
        ("--max-stale", "nan"),
        ("--against", "missing.prof"),
    ],
)
def test_bad_options_are_exit_code_2(command, words):
    assert command("check", RECORDING, "--binary", ELF, *words).code == 2


def test_bad_files_are_exit_code_2(command, tmp_path):
    empty = tmp_path / "empty"
    empty.touch()
    assert command("check", empty, "--binary", ELF).code == 2
    assert command("check", ELF, "--binary", ELF).code == 2
    assert command("check", RECORDING, "--binary", empty).code == 2


def test_one_line_says_how_stale_a_profile_is(command, profile, tmp_path):
    for fresh in profile:
        answer = command("check", fresh, "--binary", ELF, "--format", "line", "--max-missing", "0")
        assert (answer.code, answer.out) == (0, f"lbr2pgo: {fresh}: fits {ELF}\n")
    old = tmp_path / "old.prof"
    old.write_bytes(b"main:100:0\n 60000: 25\ngone:60:0\n 1: 75\n")
    words = ("check", old, "--binary", ELF, "--format", "line", "--max-stale", "1", "--max-missing")
    answer = command(*words, "0.75")
    assert answer.code == 0
    assert "100.00% stale" in answer.out
    assert "75.00% in functions that it lacks (gone)" in answer.out
    answer = command(*words, "0.74")
    assert answer.code == 1
    assert answer.out.endswith("; refused: missing\n")


def test_a_binary_without_debug_information_cannot_be_compared(command, profile, tmp_path, tool):
    import subprocess

    stripped = tmp_path / "stripped"
    subprocess.run([tool("llvm-strip-22"), "-g", ELF, "-o", stripped], check=True)
    answer = command("check", profile[0], "--binary", stripped, "--format", "line")
    assert answer.code == 0
    assert "no debug information" in answer.out


PROBED = ("-O2", "-g", "-fpseudo-probe-for-profiling", "-fno-unique-internal-linkage-names")


@pytest.fixture
def probed(command, tmp_path, tool, run):
    """A probed program, its recording and profile, and a later build with a function changed."""
    source = TESTBINS / "src" / "interp.c"
    edited = tmp_path / "edited.c"
    text = source.read_text()
    edited.write_text(text.replace("    if (depth == 0", "    if (seed == 7) return 5; if (!depth"))
    old, new = tmp_path / "old", tmp_path / "new"
    for file, target in ((source, old), (edited, new)):
        run(tool("clang-22"), *PROBED, file, "-o", target)
    recording, profile = walked(tmp_path, old), tmp_path / "probed.prof"
    done = command("convert", recording, "--binary", old, "--llvm", profile)
    assert done.code == 0
    return old, new, recording, profile


CHANGED = r"changed: walk \(\d+\.\d\d% of counts\): other branches, 2 calls"


def test_functions_whose_probes_changed_are_named(command, probed):
    old, new, recording, profile = probed
    answer = command("check", profile, "--binary", new, "--max-stale", "0.001")
    assert answer.code == 1
    assert re.search(CHANGED, answer.out)
    answer = command("check", recording, "--binary", old, "--new-build", new)
    assert re.search(CHANGED, answer.out)
    assert "changed:" not in command("check", profile, "--binary", old).out
    line = command("check", profile, "--binary", new, "--format", "line").out
    assert re.search(r"% in functions whose control flow has changed \(walk\)\n$", line)
    details = measures(command("check", profile, "--binary", new, "--format", "json"))["stale"]
    assert [each["function"] for each in details["details"]["changed"]] == ["walk"]


def test_what_carrying_would_keep_is_told(command, tmp_path: Path) -> None:
    old, new = (TESTBINS / "x86-64" / f"interp.{kind}" for kind in ("pie", "static"))
    profile = tmp_path / "old.fdata"
    assert command("convert", RECORDING, "--binary", old, "--fdata", profile).code == 0
    answer = command("check", profile, "--binary", old, "--new-build", new)
    assert re.search(r"carry would keep (99|100)\.\d% of the counts", answer.out)
    assert "carry would keep" not in command("check", profile, "--binary", old).out


def test_what_carry_would_keep_for_a_new_build(command, probed, tmp_path):
    old, new, recording, profile = probed
    carried = tmp_path / "carried.prof"
    words = ("--from", old, "--to", new, "-o", carried, "--json", tmp_path / "carried.json")
    done = command("carry", profile, *words)
    assert done.code == 0
    share, *ways = done.err.splitlines()
    assert re.fullmatch(r"\d+\.\d% of the counts carried", share)
    assert ways[0].endswith(" in functions that did not change")
    asked = ("--binary", old, "--new-build", new)
    for what in (profile, recording):
        answer = command("check", what, *asked, "--max-stale", "1")
        assert f"lbr2pgo carry would keep {share.partition(' ')[0]} of the counts" in answer.out
    answer = command("check", profile, *asked, "--max-stale", "1", "--format", "json")
    account = json.loads((tmp_path / "carried.json").read_text())
    assert json.loads(answer.out)["carried"] == account
    assert "carry would" not in command("check", profile, "--binary", old).out
    assert "carry would" not in command("check", profile, "--binary", new, "--new-build", old).out
    assert "changed:" not in command("check", carried, "--binary", new).out


def test_a_probed_recording_is_as_its_profile(command, probed):
    old, _, recording, profile = probed
    answer = command(
        "check", recording, "--binary", old, "--against", profile, "--min-overlap", "1",
        "--format", "json",
    )  # fmt: skip
    assert answer.code == 0


def test_a_table_tells_of_the_heaviest_changes_only(command, tmp_path, tool, run):
    names = [f"f{i}" for i in range(60)]
    source = tmp_path / "many.c"
    source.write_text("".join(f"int {n}(int x) {{ return x ? 1 : 2; }}\n" for n in names))
    many = tmp_path / "many"
    run(tool("clang-22"), *PROBED, "-shared", "-fPIC", source, "-o", many)
    profile = tmp_path / "many.prof"
    lines = (f"{n}:{60 - i}:1\n 1: {60 - i}\n !CFGChecksum: 1\n" for i, n in enumerate(names))
    profile.write_text("".join(lines))
    out = command("check", profile, "--binary", many).out
    assert out.count("changed: ") == 8
    assert "changed: f0 (" in out
    assert "… and 52 more" in out


def test_without_gates_the_verdict_is_in_words_on_one_screen(command):
    out = command("check", RECORDING, "--binary", ELF).out
    assert out.startswith("Verdict: good.\n  good ")
    assert "at least 3.2% of its counts stand elsewhere by chance" in out
    assert len(out.splitlines()) <= 24
    assert "gate" not in out


def test_gates_decide_the_verdict(command):
    passed = command("check", RECORDING, "--binary", ELF, "--min-density", "5")
    refused = command("check", RECORDING, "--binary", ELF, "--min-density", "50")
    assert (passed.code, passed.out.splitlines()[0]) == (0, "Verdict: passed.")
    assert (refused.code, refused.out.splitlines()[0]) == (1, "Verdict: refused by density.")


def sticky(path, part):
    """A recording in which a part of the stacks begins with the same branch again and again."""
    (batch,) = PerfData(STATIC_RECORDING).batches()
    rows = zip(batch.offsets[:-1].tolist(), batch.offsets[1:].tolist(), strict=True)
    stacks = [[tuple(entry) for entry in batch.entries[a:b].tolist()] for a, b in rows]
    planted = stacks[0][0]
    for stack in stacks[: int(len(stacks) * part)]:
        stack[0] = planted
    path.write_bytes(recorded(stacks))
    return path


@pytest.mark.parametrize(("part", "code"), [(0.0, 0), (0.9, 1)])
def test_branches_that_stick_to_the_top_are_a_bias(command, tmp_path, part, code):
    path = sticky(tmp_path / "perf.data", part)
    words = ("check", path, "--binary", STATIC, "--max-bias", "0.2")
    answer = command(*words, "--format", "json")
    assert answer.code == code
    assert part / 4 <= measures(answer)["bias"]["value"] < 0.2 + part
    answer = command(*words)
    assert ("Correct it: --correct-bias" in answer.out) == bool(code)


def test_a_written_profile_has_no_stacks_to_be_biased(command, profile):
    answer = command("check", profile[0], "--binary", ELF, "--format", "json")
    assert measures(answer)["bias"]["value"] is None


def test_verbose_tells_the_time_of_each_stage(command, profile):
    answer = command("check", RECORDING, "--binary", ELF, "--against", profile[0], "--verbose")
    assert answer.code == 0
    for stage in ("open the inputs", "read and count", "measure", "all stages"):
        assert re.search(rf"^{stage} +[0-9.]+ s", answer.err, re.MULTILINE)


def test_damage_is_told_before_the_verdict(command, tmp_path):
    (tmp_path / "cut").write_bytes(RECORDING.read_bytes()[:-40_000])
    answer = command("check", tmp_path / "cut", "--binary", ELF)
    assert answer.code == 0
    assert "truncated: bytes that the header promises and the file lacks" in answer.err
    assert answer.err.startswith("warning: ")
