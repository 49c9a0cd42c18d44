"""`lbr2pgo dump`: each stage of the road, from the command line."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest
from builders.recordings import PIE, RECORDING, STATIC, TESTBINS, recorded

import lbr2pgo
from lbr2pgo.dumping.cfg import plain

LOOP = ((0x22A8DA, 0x22A8C0, 2), (0x22A8DA, 0x22A8C0, 1 | 7 << 4))


def dump(*words: object) -> tuple[object, ...]:
    return ("dump", *words)


# ---------------------------------------------------------------------------- stacks


def test_stacks_show_every_sample_and_entry(command) -> None:
    answer = command(*dump("stacks", RECORDING))
    assert answer.code == 0
    assert len(re.findall("^sample ", answer.out, re.MULTILINE)) == 128
    assert len(re.findall("^ +[0-9]+ +0x", answer.out, re.MULTILINE)) == 4096
    first = answer.out.index("sample 1:")
    assert answer.out.index("pid 17737 maps 0x4000001000-0x4000003000") < first


def test_stacks_agree_with_perf_script(command, tool: Callable[[str], str], run) -> None:
    done = run(tool("perf"), "script", "-i", RECORDING, "-F", "brstack", "--show-mmap-events")
    pairs = [
        (int(a, 16), int(b, 16), flag)
        for a, b, flag in re.findall(r"(0x\w+)/(0x\w+)/([PM])", done.stdout)
    ]
    shown = command(*dump("stacks", RECORDING)).out
    entries = re.findall(r"(0x\w+) -> +(0x\w+)  (predicted|mispredicted)", shown)
    ours = [(int(a, 16), int(b, 16), "P" if f == "predicted" else "M") for a, b, f in entries]
    assert ours == pairs


def test_stacks_with_a_limit(command) -> None:
    out = command(*dump("stacks", RECORDING, "--limit", 2)).out
    assert "sample 2:" in out
    assert "sample 3:" not in out
    assert command(*dump("stacks", RECORDING, "--limit", -1)).code == 2


def test_stacks_of_a_process(command, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(recorded([LOOP], pid=10))
    assert "sample 1: pid 10" in command(*dump("stacks", path, "--pid", 10)).out
    nothing = command(*dump("stacks", path, "--pid", 11)).out
    assert "sample" not in nothing
    assert "maps" not in nothing


def test_stacks_of_perf_script_text_with_symbols(command, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("prog 10 5.000001: main+0x4/main+0x0/P/-/-/3 \n" * 2)
    start = int(symbol_address("main"), 16)
    answer = command(*dump("stacks", path, "--binary", STATIC))
    assert answer.code == 0
    assert re.search(rf"{start + 4:#x} -> +{start:#x}  predicted, 3 cycles", answer.out)


def symbol_address(name: str) -> str:
    from lbr2pgo.program.program import Program

    address = Program.open(STATIC).address_of(name)
    assert address is not None
    return f"{address:x}"


def test_counts_have_no_stacks_to_show(command, tmp_path: Path) -> None:
    path = tmp_path / "traces"
    path.write_text("T 22a8da 22a8c0 22a8da 7\n")
    answer = command(*dump("stacks", path))
    assert answer.code == 2
    assert "holds counts and no stacks" in answer.err
    assert "lbr2pgo dump counts" in answer.err


def test_damage_is_told_after_the_samples(command, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(RECORDING.read_bytes()[:60_000])
    assert "truncated" in command(*dump("stacks", path)).err


# ---------------------------------------------------------------------------- counts


def test_counts_show_every_trace_with_its_verdict(command) -> None:
    answer = command(*dump("counts", RECORDING, "--binary", PIE))
    assert answer.code == 0
    rows = re.findall(r"^([\d,]+) \(([\d,]+)\): (.*)$", answer.out, re.MULTILINE)
    assert len(rows) == 144
    assert sum(int(count.replace(",", "")) for count, _, _ in rows) == 4064
    verdicts = re.findall(r"^    (.*)$", answer.out, re.MULTILINE)
    known = [row for row in rows if "end unknown" not in row[2] and "-> outside" not in row[2]]
    assert verdicts == ["valid"] * len(known)


def test_counts_of_a_function_touch_it(command) -> None:
    answer = command(*dump("counts", RECORDING, "--binary", PIE, "--function", "walk"))
    rows = [line for line in answer.out.splitlines()[1:] if not line.startswith("    ")]
    assert rows
    assert all("<walk" in row for row in rows)


def test_counts_say_why_one_is_rejected(command, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(recorded([((0x22A8D2, 0x22A8C0, 2), (0x22A8DA, 0x22A8C0, 2))]))
    answer = command(*dump("counts", path, "--binary", STATIC))
    assert "rejected: ends inside the call at 0x22a8d0 <main+0x1e0>" in answer.out
    suspicious = command(*dump("counts", path, "--binary", STATIC)).out
    assert "matched /elsewhere/interp.static by name" in answer.err
    assert suspicious == answer.out


def test_strictness_changes_the_verdict(command, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(recorded([LOOP]))
    words = dump("counts", path, "--binary", STATIC)
    assert "valid, but passes the call at 0x22a8d0 <main+0x1e0>" in command(*words).out
    assert "rejected: execution does not run past the call" in command(*words, "--strict").out


# ---------------------------------------------------------------------------- disasm


def test_disassembly_is_the_one_of_objdump(command, tool: Callable[[str], str], run) -> None:
    answer = command(*dump("disasm", "--binary", PIE, "--function", "walk"))
    assert answer.code == 0
    done = run(tool("llvm-objdump-22"), "-d", "--disassemble-symbols=walk", PIE)
    pattern = r"^ *([0-9a-f]+): ((?:[0-9a-f]{2} )+) *\t? *(\w+)"
    expected = re.findall(pattern, done.stdout, re.MULTILINE)
    ours = re.findall(pattern, answer.out, re.MULTILINE)
    assert len(ours) > 20
    # llvm-objdump goes on into the padding behind the function.
    for mine, theirs in zip(ours, expected, strict=False):
        assert (mine[0], mine[1].strip()) == (theirs[0], theirs[1].strip())


def test_disassembly_with_counts_lines_and_inline_frames(command, tool, run) -> None:
    answer = command(*dump("disasm", RECORDING, "--binary", PIE, "--function", "main"))
    assert answer.code == 0
    assert "; main ./src/interp.c:172 [6.1] > atoi /usr/include/stdlib.h:364 [2]" in answer.out
    assert re.search(r"^ +[1-9]\d* +[0-9a-f]+: ", answer.out, re.MULTILINE)
    conditional = [line for line in answer.out.splitlines() if "; COND" in line]
    assert conditional
    assert all(re.search(r"taken [\d,]+, not taken [\d,]+", line) for line in conditional)


def test_targets_of_indirect_jumps_add_up(command) -> None:
    out = command(*dump("disasm", RECORDING, "--binary", PIE, "--function", "run")).out
    jumps = re.findall(r"; INDIRECT_JUMP, taken ([\d,]+).*\n((?: +[\d,]+ times to .*\n)*)", out)
    assert len(jumps) > 5
    for taken, targets in jumps:
        counts = re.findall(r"([\d,]+) times to ", targets)
        assert sum(int(count.replace(",", "")) for count in counts) == int(taken.replace(",", ""))


def test_disassembly_without_debug_information_says_why(command, tmp_path: Path, tool, run) -> None:
    binary = tmp_path / "interp"
    run(tool("llvm-strip-22"), "--strip-debug", PIE, "-o", binary)
    answer = command(*dump("disasm", "--binary", binary, "--function", "walk"))
    assert answer.code == 0
    assert "no source locations: " in answer.out
    assert "; no source location\n" in answer.out


def test_aarch64(command) -> None:
    binary = TESTBINS / "aarch64" / "interp.pie"
    recording = TESTBINS / "recordings" / "aarch64-interp.pie.perf.data"
    for stage in ("disasm", "cfg"):
        answer = command(*dump(stage, recording, "--binary", binary, "--function", "run"))
        assert answer.code == 0
        assert "run" in answer.out


# ---------------------------------------------------------------------------- cfg and functions


def test_a_graph_as_text_and_for_graphviz(command) -> None:
    words = dump("cfg", RECORDING, "--binary", PIE, "--function", "run")
    assert command(*words).out.startswith("run: ")
    assert command(*words, "--format", "dot").out.startswith('digraph "run" {\n')
    assert command(*words, "--format", "png").code == 2


@pytest.mark.parametrize(
    ("words", "reading"),
    [
        ((), {}),
        (("--strict",), {"strict": True}),
        (("--pid", 17737, "--event", "taken-branches:u"),
         {"pid": [17737], "event": "taken-branches:u"}),
    ],
)  # fmt: skip
def test_a_graph_for_other_programs(command, words: tuple[object, ...], reading) -> None:
    """As the API has it, of the same samples."""
    answer = command(*dump("cfg", RECORDING, "--binary", PIE, "--function", "run"), *words,
                     "--format", "json")  # fmt: skip
    read = nx.node_link_graph(json.loads(answer.out), edges="edges")
    assert nx.utils.graphs_equal(read, plain(lbr2pgo.flow_graph(RECORDING, PIE, "run", **reading)))


def test_a_graph_of_code_alone(command) -> None:
    words = dump("cfg", "--binary", PIE, "--function", "walk", "--format", "graphml")
    code, seen = (nx.parse_graphml(command(*words, *more).out) for more in ((), (RECORDING,)))
    assert list(code) == list(seen)
    assert not nx.get_node_attributes(code, "count")
    assert nx.get_node_attributes(seen, "count")
    for name in ("lines", "instructions"):
        assert nx.get_node_attributes(code, name) == nx.get_node_attributes(seen, name) != {}


@pytest.mark.parametrize("stage", ["counts", "disasm", "cfg"])
def test_a_function_that_does_not_exist(command, stage: str) -> None:
    answer = command(*dump(stage, RECORDING, "--binary", PIE, "--function", "nxt_token"))
    assert answer.code == 2
    assert f"{PIE}: no function is called nxt_token\nNear matches: next_token" in answer.err
    assert answer.out == ""


def test_a_function_by_an_address_in_it(command) -> None:
    words = dump("disasm", "--binary", STATIC, "--function")
    by_name = command(*words, "main")
    assert command(*words, f"0x{symbol_address('main')}").out == by_name.out
    assert command(*words, "0x22a8da").out == by_name.out
    for nowhere in ("0x5", "0xzz", "0x", "0x1" + 20 * "0"):
        assert command(*words, nowhere).code == 2


# ---------------------------------------------------------------------------- profiles


@pytest.mark.parametrize(
    "options", [("--llvm",), ("--fdata",), ("--llvm-format", "extbinary", "--llvm")]
)
def test_a_written_profile_is_shown(command, tmp_path: Path, options: tuple[str, ...]) -> None:
    output, text = tmp_path / "out", tmp_path / "text"
    assert command("convert", RECORDING, "--binary", PIE, *options, output).code == 0
    shown = command(*dump("profile", output)).out
    if "--fdata" not in options:
        assert command("convert", RECORDING, "--binary", PIE, "--llvm", text).code == 0
        assert shown == text.read_text()
    else:
        assert shown == output.read_text()
    one = command(*dump("profile", output, "--function", "run"))
    assert one.code == 0
    assert 0 < len(one.out) < len(shown)
    missing = command(*dump("profile", output, "--function", "runn"))
    assert missing.code == 2
    assert "Near matches: run" in missing.err


def test_a_recording_is_no_profile(command) -> None:
    answer = command(*dump("profile", RECORDING))
    assert answer.code == 2
    assert "lbr2pgo dump stacks" in answer.err


# ---------------------------------------------------------------------------- names


def test_names_in_files_cannot_steer_the_terminal(command, tmp_path: Path, tool) -> None:
    profile = tmp_path / "profile"
    profile.write_bytes(b"\x1b[31mevil\xc2\x9b:5:1\n 1: 5 caf\xff:3\n")
    answer = command(*dump("profile", profile))
    assert answer.out == "\\x1b[31mevil\\x9b:5:1\n 1: 5 caf\\udcff:3\n"
    recording = tmp_path / "perf.data"
    recording.write_bytes(recorded([LOOP], path="/x/\x1b[31m\ninterp.static"))
    assert r"/x/\x1b[31m\ninterp.static" in command(*dump("stacks", recording)).out
    binary = tmp_path / "evil"
    rename = [tool("llvm-objcopy-22"), "--redefine-sym=walk=w\x1b[31m\nalk", PIE, binary]
    subprocess.run(rename, check=True)
    for stage in ("disasm", "cfg", "counts"):
        words = dump(stage, RECORDING, "--binary", binary, "--function", "w\x1b[31m\nalk")
        answer = command(*words)
        assert answer.code == 0
        assert r"w\x1b[31m\nalk" in answer.out
        assert "\x1b" not in answer.out
    words = dump("cfg", RECORDING, "--binary", binary, "--function", "w\x1b[31m\nalk", "--format")
    graph = nx.parse_graphml(command(*words, "graphml").out).graph
    assert graph["function"] == json.loads(command(*words, "json").out)["graph"]["function"]
    assert graph["function"] == r"w\x1b[31m\nalk"
