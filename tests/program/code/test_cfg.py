"""Control-flow graphs: small ones as expected, any as the rules of a graph of blocks say."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from builders.fixtures import Corpus, Link
from builders.symbols import Row, symbol_table
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.program.code.cfg import EdgeKind, FunctionCFG, Transfers, build_cfgs
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.code.regions import build_functions
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import ByteRanges


@dataclass
class Case:
    name: str
    assembly: str
    expected: dict[str, list[str]]

    def one(self, word: str, default: str) -> str:
        return " ".join(self.expected.pop(word, [default]))


def read_cases() -> list[Case]:
    text = (Path(__file__).parent / "cfg_cases.txt").read_text()
    cases = []
    for part in text.split("\n== ")[1:]:
        name, _, rest = part.partition("\n")
        assembly, _, graph = rest.partition("\n--\n")
        expected: dict[str, list[str]] = {}
        for line in filter(None, map(str.strip, graph.splitlines())):
            word, _, value = line.partition(" ")
            if value.startswith("-> "):
                word, value = "edge", line
            expected.setdefault(word, []).append(value)
        cases.append(Case(name, f".globl f\n.type f, @function\n{assembly}\n", expected))
    return cases


class Labels:
    """Names of addresses, by the symbols of an image."""

    def __init__(self, program: Program) -> None:
        symbols = program.symbols
        self.address = dict(zip(symbols.names, symbols.start.tolist(), strict=True))
        names = reversed(self.address.items())
        self.name = {address: name for name, address in names if not name.startswith("$")}

    def blocks(self, cfg: FunctionCFG) -> list[str]:
        """Blocks without a label are .1, .2 and so on."""
        unnamed = iter(f".{i}" for i in range(1, 100))
        return [self.name.get(a) or next(unnamed) for a in cfg.block_start.tolist()]

    def transfers(self, blocks: list[str], transfers: Transfers) -> list[str]:
        columns = (transfers.block, transfers.target.tolist(), transfers.has_target)
        return [
            f"{blocks[b]} {self.name.get(t, hex(t)) if known else '?'}"
            for b, t, known in zip(*columns, strict=True)
        ]


def recorded(labels: Labels, lines: list[str]) -> dict[int, list[int]]:
    found = {}
    for line in lines:
        jump, _, targets = line.partition(" -> ")
        found[labels.address[jump]] = [labels.address[name] for name in targets.split()]
    return found


@pytest.mark.parametrize("case", read_cases(), ids=lambda case: case.name)
def test_small_graphs(case: Case, link: Link) -> None:
    machine = case.one("machine", "x86-64")
    program = Program.open(link(case.assembly, "-e", "f", machine=machine))
    labels = Labels(program)
    region = program.regions.by_name(case.one("function", "f"))
    assert region is not None
    cfg = program.cfg(region, recorded(labels, case.expected.pop("recorded", [])))
    blocks = labels.blocks(cfg)
    edges = zip(cfg.edge_source, cfg.edge_target, cfg.edge_kind, strict=True)
    actual = {
        "blocks": [" ".join(blocks)],
        "entries": [" ".join(blocks[i] for i in cfg.entries)],
        "edge": [f"{blocks[a]} -> {blocks[b]} {EdgeKind(k).name}" for a, b, k in edges],
        "call": labels.transfers(blocks, cfg.calls),
        "exit": labels.transfers(blocks, cfg.exits),
        "loop": [" ".join(blocks[i] for i in sorted(loop)) for loop in cfg.loops],
    }
    assert {word: lines for word, lines in actual.items() if lines} == case.expected


def check_rules(cfg: FunctionCFG, code: InstructionTable) -> None:
    """What is true of every graph of blocks."""
    row_of = {address: i for i, address in enumerate(code.address.tolist())}
    covered: list[int] = []
    for start, last, end in zip(cfg.block_start, cfg.block_last, cfg.block_end, strict=True):
        rows = range(row_of[int(start)], row_of[int(last)] + 1)
        covered += rows
        assert code.end[rows[-1]] == end
        assert (code.address[rows[1:]] == code.end[rows[:-1]]).all()
        assert not code.ends_line[rows[:-1]].any()
        assert not (code.kind[rows[:-1]] == Kind.COND).any()
    assert covered == sorted(set(covered))
    targets_by_kind = Counter(zip(cfg.edge_source.tolist(), cfg.edge_kind.tolist(), strict=True))
    for (_, kind), count in targets_by_kind.items():
        assert kind == EdgeKind.INDIRECT or count == 1
    falls = cfg.edge_kind == EdgeKind.FALLTHROUGH
    assert (cfg.block_end[cfg.edge_source[falls]] == cfg.block_start[cfg.edge_target[falls]]).all()
    last = code.index_of(cfg.block_last)
    for kind, edge in ((Kind.COND, EdgeKind.TAKEN), (Kind.JUMP, EdgeKind.JUMP)):
        chosen = cfg.edge_kind == edge
        source = last[cfg.edge_source[chosen]]
        assert (code.kind[source] == kind).all()
        assert (code.target[source] == cfg.block_start[cfg.edge_target[chosen]]).all()
        left = set(cfg.exits.address[cfg.exits.kind == kind].tolist())
        stayed = set(code.address[source].tolist())
        assert not left & stayed
        assert left | stayed == set(code.address[last[code.kind[last] == kind]].tolist())


@pytest.mark.parametrize("name", ["x86-64/interp.pie", "x86-64/shapes.pie", "aarch64/shapes.pie"])
def test_rules_hold_in_own_programs(name: str) -> None:
    program = Program.open(Path(__file__).parents[3] / "testbins" / name)
    for region in range(len(program.regions)):
        cfg = program.cfg(region)
        family = program.regions.families(np.array([region]))
        check_rules(cfg, program.instructions_for(program.regions.start[family]))


@pytest.mark.parametrize(
    "name", ["x86-64/interp.pie", "x86-64/shapes.static", "aarch64/shapes.pie"]
)
def test_graphs_made_together_are_those_made_alone(name: str) -> None:
    program = Program.open(Path(__file__).parents[3] / "testbins" / name)
    roots = np.unique(program.regions.parent)[::-1]
    jumps = program.branches.address[program.branches.kind == Kind.INDIRECT_JUMP].tolist()
    seen = {jump: [jump, int(program.regions.start[0])] for jump in jumps}
    together = list(program.cfgs(roots, seen).each())
    assert [cfg.function for cfg in together] == roots.tolist()
    for root, cfg in zip(roots.tolist(), together, strict=True):
        alone = program.cfg(root, seen)
        for column in fields(FunctionCFG):
            given, wanted = getattr(cfg, column.name), getattr(alone, column.name)
            if isinstance(wanted, Transfers):
                given, wanted = np.stack(columns_of(given)), np.stack(columns_of(wanted))
            np.testing.assert_array_equal(given, wanted, column.name)


def columns_of(transfers: Transfers) -> list[np.ndarray]:
    return [getattr(transfers, column.name) for column in fields(transfers)]


@pytest.mark.slow
def test_rules_hold_in_sqlite(corpus: Corpus) -> None:
    program = Program.open(corpus("sqlite/sq.zst"))
    for region in program.regions.containing(program.functions.start[::7]).tolist():
        cfg = program.cfg(region)
        check_rules(cfg, program.instructions_for(program.regions.start[[region]]))


LINES = st.sampled_from(
    ["nop", "call f", "ret", "ud2", "syscall", "jmp *%rax", ".byte 6", "jne {}", "jmp {}", "je {}"]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(LINES, st.integers(0, 30)), min_size=1, max_size=30), st.data())
def test_rules_hold_for_random_code(code: list[tuple[str, int]], data: st.DataObject) -> None:
    program = RandomCode([line.format(target % (len(code) + 1)) for line, target in code])
    jumps = [i for i, (line, _) in enumerate(code) if "*" in line]
    place = st.integers(0, len(code) - 1).map(program.address.__getitem__)
    seen = {program.address[i]: data.draw(st.lists(place, max_size=4)) for i in jumps}
    cfg = program.cfg(seen)
    check_rules(cfg, program.table)
    graph = cfg.graph
    assert sorted(graph) == list(range(len(cfg)))
    assert graph.number_of_edges() == len(
        set(zip(cfg.edge_source.tolist(), cfg.edge_target.tolist(), strict=True))
    )
    in_loops = {block for loop in cfg.loops for block in loop}
    assert in_loops == {block for cycle in nx.simple_cycles(graph) for block in cycle}
    for jump, targets in seen.items():
        (source,) = cfg.block_of(np.array([jump], np.uint64)).tolist()
        inside = [t for t in targets if t in program.address_set]
        assert {graph.nodes[b]["start"] for b in graph[source]} == set(inside)


SIZE = {"call f": 5, "ud2": 2, "syscall": 2, "jmp *%rax": 2, "jne": 6, "je": 6, "jmp": 5}
KIND = {
    "call f": Kind.CALL, "ret": Kind.RET, "ud2": Kind.TRAP, "syscall": Kind.SYSCALL,
    "jmp *%rax": Kind.INDIRECT_JUMP, "jne": Kind.COND, "je": Kind.COND, "jmp": Kind.JUMP,
}  # fmt: skip


class RandomCode:
    """A function of these lines, assembled by hand; a number is the line to jump to."""

    def __init__(self, lines: list[str]) -> None:
        words = [line if line in KIND else line.split()[0] for line in lines]
        ends = np.cumsum([0x1000, *(SIZE.get(word, 1) for word in words)])
        self.address = ends[:-1].tolist()
        real = [i for i, word in enumerate(words) if word != ".byte"]
        self.address_set = {self.address[i] for i in real}
        kinds = [KIND.get(words[i], Kind.OTHER) for i in real]
        direct = [k in (Kind.COND, Kind.JUMP) for k in kinds]
        self.table = InstructionTable(
            address=np.array([self.address[i] for i in real], np.uint64),
            size=np.array([SIZE.get(words[i], 1) for i in real], np.uint8),
            kind=np.array(kinds, np.uint8),
            target=np.array(
                [
                    ends[int(lines[i].split()[1])] if d else 0
                    for i, d in zip(real, direct, strict=True)
                ],
                np.uint64,
            ),
            has_target=np.array(direct, bool),
        )
        self.end = int(ends[-1])

    def cfg(self, seen: dict[int, list[int]]) -> FunctionCFG:
        row = Row("f", 0x1000, self.end - 0x1000)
        functions = build_functions(symbol_table(row), ByteRanges.of([(0x1000, self.end)]))
        (cfg,) = build_cfgs(self.table, functions, np.array([0]), seen).each()
        return cfg
