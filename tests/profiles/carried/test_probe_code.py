from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import Tool
from builders.probed_builds import FLAGS, ProbedBuild, built

from lbr2pgo.profiles.carried.probe_code import UNSEEN, ProbedCode, ProbedFunction
from lbr2pgo.profiles.llvm.sample_names import guid
from lbr2pgo.program.program import Program
from lbr2pgo.program.pseudo_probes import ProbeKind

Builds = tuple[ProbedBuild, ProbedBuild]


@pytest.fixture
def old(probed_builds: Builds) -> ProbedCode:
    return ProbedCode(Program.open(probed_builds[0].program))


def read(code: ProbedCode, name: str) -> ProbedFunction:
    code.read([guid(name)])
    return code.function(guid(name))


def test_calls_are_known_by_what_they_call(old: ProbedCode) -> None:
    main = read(old, "main")
    called = [set(main.callees[i]) for i in np.flatnonzero(main.kind == ProbeKind.DIRECT_CALL)]
    names = [set(each) for each in map(set, called) if each]
    assert names == [{"atoi"}, {"grown"}, {"before"}, {"typed"}, {"gone"}, {"whole"}, {"printf"}]


def test_blocks_are_known_by_their_words(old: ProbedCode) -> None:
    before = read(old, "before")
    numbers = [words for words in before.words if "0x1234567" in words]
    assert len(numbers) == 1
    assert sum(numbers[0].values()) < 12, "up to the next probe or jump"
    assert not before.words[0]
    assert before.kind[0] == UNSEEN
    assert list(before.seen) == [
        i for i in range(len(before)) if before.words[i] or before.callees[i]
    ]


def test_what_was_inlined_tells_of_the_call(tool: Tool, tmp_path: Path) -> None:
    program = built("inlining.c", tmp_path, tool("clang-22")).program
    code = ProbedCode(Program.open(program))
    tree = Program.open(program).probes.table().tree
    inlined = np.flatnonzero(tree.site > 0)
    assert len(inlined)
    for node in inlined.tolist():
        parent, site = int(tree.guid[tree.parent[node]]), int(tree.site[node])
        code.read([parent])
        assert code.source_name(int(tree.guid[node])) in code.function(parent).callees[site]
        assert code.function(parent).kind[0] == UNSEEN


def test_functions_are_told_apart(old: ProbedCode) -> None:
    number = guid("grown")
    assert old.has(number)
    assert number in old.numbers
    assert old.name(number) == old.source_name(number) == "grown"
    assert old.checksum(number) > 0 == old.checksum(1)
    assert not old.is_ambiguous(number)
    assert {old.source_name(each) for each in old.numbers} >= {"typed", "main"}
    assert len(old.function(1)) == 0, "it was not read"
    assert old.flow(1) is None


@pytest.mark.parametrize("target", ["aarch64-linux-gnu", "riscv64-linux-gnu"])
def test_other_architectures(target: str, tool: Tool, tmp_path: Path) -> None:
    flags = (
        *FLAGS,
        f"--target={target}",
        "-fuse-ld=lld",
        "-mno-relax" if "riscv" in target else "-g1",
    )
    program = built("carried_old.c", tmp_path, tool("clang-22"), *flags).program
    code = ProbedCode(Program.open(program))
    before = read(code, "before")
    assert sum(bool(words) for words in before.words) > 6
    called = {name for names in read(code, "main").callees for name in names}
    assert called >= {"before", "gone", "typed", "whole"}
