"""Pseudo probes of real programs against llvm-profgen, and of odd ones by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import ROOT
from builders.pseudo_probes import (
    Encoder,
    Function,
    Probe,
    descriptor,
    shown_by_dump,
    shown_by_llvm,
)

from lbr2pgo.dumping import probes as dump
from lbr2pgo.program.code.regions import code_ranges
from lbr2pgo.program.elf.symbols import Symbols, read_symbols
from lbr2pgo.program.program import Program
from lbr2pgo.program.pseudo_probes import (
    DEEPEST_INLINING,
    ProbeTable,
    PseudoProbes,
    guid,
    open_probes,
)
from lbr2pgo.support.addresses import ByteRanges

PROBED = "-fpseudo-probe-for-profiling"
C_SOURCES = [ROOT / "testbins/src/interp.c"]
CPP_SOURCES = [ROOT / "testbins/src/shapes.cpp"]
SAME_NAMES = [ROOT / f"tests/programs/same_names_{part}.c" for part in ("main", "other")]
INLINING = [ROOT / f"tests/program/programs/{part}.cpp" for part in ("inlining", "other")]


@pytest.fixture(scope="module")
def probed(tmp_path_factory, tool, run):
    """`probed(sources, "-O2")`: a program of them, built with probes."""

    def build(sources, *flags: str) -> Path:
        target = tmp_path_factory.mktemp("probed") / "program"
        compiler = tool("clang++-22" if sources[0].suffix == ".cpp" else "clang-22")
        run(compiler, PROBED, "-fuse-ld=lld", *flags, *sources, "-o", target, cwd=target.parent)
        return target

    return build


def shown(binary: Path):
    return shown_by_dump("\n".join(dump.lines(Program.open(binary))))


def agrees(binary: Path, tool, at_least: int) -> None:
    expected, functions = shown_by_llvm(tool("llvm-profgen-22"), binary)
    probes, described = shown(binary)
    assert described == functions
    assert sum(map(len, expected.values())) >= at_least
    assert probes == expected
    assert not Program.open(binary).probes.health()


@pytest.mark.parametrize(("sources", "flags"), [
    (C_SOURCES, "-O0"), (C_SOURCES, "-O1 -g"), (C_SOURCES, "-O3 -g -flto"),
    (CPP_SOURCES, "-O0 -g"), (CPP_SOURCES, "-O2"), (CPP_SOURCES, "-O3 -g1"),
    (CPP_SOURCES, "-Os -g"),
    (CPP_SOURCES, "-O2 -g -ffunction-sections -Wl,--gc-sections,--emit-relocs"),
    (CPP_SOURCES, "-O2 -g -ffunction-sections -Wl,--icf=all"),
    (CPP_SOURCES, "-O2 -g -gz -no-pie -static"),
    (C_SOURCES, "-O2 -g --target=aarch64-linux-gnu"),
    (C_SOURCES, "-O2 -g --target=riscv64-linux-gnu -mno-relax"),
    (INLINING, "-O2 -g -ffunction-sections -Wl,--symbol-ordering-file={order}"),
    (INLINING, "-O2 -g -flto=thin"),
], ids=lambda value: value if isinstance(value, str) else value[0].name)  # fmt: skip
def test_probes_are_those_that_llvm_shows(sources, flags, probed, tool, tmp_path: Path) -> None:
    order = tmp_path / "order"
    order.write_text("main\n")
    agrees(probed(sources, *flags.format(order=order).split()), tool, at_least=50)


@pytest.mark.parametrize("name", ["noinline-cs-pseudoprobe", "recursion-compression-pseudoprobe"])
def test_probes_of_llvms_own_inputs(name: str, corpus, tool) -> None:
    agrees(corpus(f"llvm-profgen/{name}.perfbin"), tool, at_least=10)


def test_code_that_was_split_off_has_its_probes(probed, tool) -> None:
    binary = probed([ROOT / "tests/programs/coroutine.cpp"], "-O2", "-g", "-std=c++20")
    agrees(binary, tool, at_least=30)
    program = Program.open(binary)
    owners = program.functions.containing(program.probes.table().address)
    assert any(program.functions.name[row].endswith(".resume") for row in owners.tolist())


@pytest.mark.parametrize("strip", ["llvm-strip-22", "strip"])
@pytest.mark.parametrize("what", ["--strip-debug", "--strip-all"])
def test_what_was_stripped_is_found_in_the_debug_file(
    strip: str, what: str, probed, tool, tmp_path: Path, run
) -> None:
    whole = probed(CPP_SOURCES, "-O2", "-g")
    objcopy = tool("llvm-objcopy-22" if strip.startswith("llvm") else "objcopy")
    debug, stripped = tmp_path / "program.debug", tmp_path / "program"
    run(objcopy, "--only-keep-debug", whole, debug)
    run(tool(strip), what, "-R", ".pseudo_probe", whole, "-o", stripped)
    run(objcopy, f"--add-gnu-debuglink={debug}", stripped)
    assert shown_probes(stripped) == shown_probes(whole)
    debug.write_bytes(debug.read_bytes() + b"another build")
    probes = Program.open(stripped).probes
    assert not probes.present
    assert probes.health() == {
        "separate debug files refused: their build-id or checksum is another": 1
    }


def shown_probes(binary: Path):
    table = Program.open(binary).probes.table()
    paths = [[table.tree.name(n) for n in table.tree.path(node)] for node in table.node.tolist()]
    return table.address.tolist(), table.index.tolist(), paths


def test_a_stripped_program_with_no_debug_file_says_what_is_lost(
    probed, tool, tmp_path: Path, run
) -> None:
    stripped = tmp_path / "program"
    run(tool("strip"), probed(C_SOURCES, "-O2", "-g"), "-o", stripped)
    probes = Program.open(stripped).probes
    assert len(probes.table()) == 0
    assert probes.health()["pseudo probes of functions without a symbol"] > 50


def test_static_functions_of_one_name_have_their_own_probes(probed, tool) -> None:
    """llvm-profgen has all at the last one of the name."""
    binary = probed(SAME_NAMES, "-O1", "-g", "-fno-unique-internal-linkage-names")
    program = Program.open(binary)
    functions = program.functions
    leaves = np.array([row for row in range(len(functions)) if functions.name[row] == "leaf"])
    assert len(leaves) == 2
    assert set(owners_of("leaf", program.probes.table(), program)) == set(leaves.tolist())
    compatible = program.probes.table(program.probes.records(of_last_namesake=True))
    assert owners_of("leaf", compatible, program) <= {leaves[1], -1}
    expected, _ = shown_by_llvm(tool("llvm-profgen-22"), binary)
    found: dict[int, list[str]] = {}
    for row, address in enumerate(compatible.address.tolist()):
        found.setdefault(address, []).append(dump.probe(compatible, row))
    assert {address: found[address] for address in expected} == expected


def owners_of(name: str, table: ProbeTable, program: Program) -> set[int]:
    """Functions in whose code the probes of a function that was not inlined are."""
    is_own = np.array([table.tree.name(node) == name for node in table.node.tolist()])
    is_own &= table.tree.parent[table.node] < 0
    return set(program.functions.containing(table.address[is_own]).tolist())


def test_probes_of_some_code_are_those_of_all_that_are_there(probed) -> None:
    program = Program.open(probed(CPP_SOURCES, "-O2", "-g"))
    everything = program.probes.table()
    functions = program.functions
    for row in range(0, len(functions), 3):
        one = functions.ranges.take(np.array([row]))
        ((start, end),) = one.pairs()
        some = program.probes.table(program.probes.records().touching(one)).within(start, end)
        all_there = everything.within(start, end)
        for column in ("address", "index", "kind", "attributes", "discriminator"):
            assert getattr(some, column).tolist() == getattr(all_there, column).tolist()


# ---------------------------------------------------------------------------- by hand


ANYWHERE = ByteRanges.of([(0, 2**64 - 1)])


class File:
    """What `PseudoProbes` asks of an image."""

    def __init__(self, probes: bytes, descriptors: bytes) -> None:
        self._sections = {".pseudo_probe": probes, ".pseudo_probe_desc": descriptors}

    def section_view(self, name: str) -> memoryview:
        return memoryview(self._sections[name])


def probes_of(
    symbols: Symbols, functions, *, descriptors: bytes = b"", **options: object
) -> PseudoProbes:
    """Of functions at addresses."""
    encoder = Encoder()
    for function, start in functions:
        encoder.record(function, start, **options)
    described = descriptors or b"".join(
        descriptor(guid(name), 7, name) for name in (b"f", b"g", b"main")
    )
    return PseudoProbes(File(encoder.data, described), symbols, ANYWHERE)


@pytest.fixture(scope="module")
def symbols(link) -> Symbols:
    """f and g, which is also called alias."""
    binary = link("""
        .globl _start, f, g, alias
        .type f, @function
        .type g, @function
        .type alias, @function
        _start: nop
        .p2align 4
        f: nop
        ret
        .size f, . - f
        .p2align 4
        g:
        alias: nop
        ret
        .size g, . - g
    """)
    from lbr2pgo.program.elf.image import Image

    return read_symbols(Image.open(binary))


def start_of(symbols: Symbols, name: str) -> int:
    return int(symbols.start[symbols.by_name(name)])


def test_a_function_is_found_by_any_name_of_its_code(symbols: Symbols) -> None:
    at = start_of(symbols, "g")
    record = Function(guid(b"alias"), [Probe(1, at), Probe(2, at + 1)])
    assert probes_of(symbols, [(record, at)]).table().address.tolist() == [at, at + 1]


def test_code_split_off_starts_at_the_symbol_that_its_sentinel_names(symbols: Symbols) -> None:
    at = start_of(symbols, "g")
    probes = probes_of(symbols, [(Function(guid(b"f"), [Probe(3, at + 1)]), at)], split=guid(b"g"))
    table = probes.table()
    assert table.address.tolist() == [at + 1]
    assert table.tree.name(0) == "f"


def test_functions_without_a_symbol_are_lost_and_counted(symbols: Symbols) -> None:
    here = start_of(symbols, "f")
    functions = [
        (Function(guid(b"gone"), [Probe(1, 0x50), Probe(2, 0x51)]), 0x50),
        (Function(guid(b"f"), [Probe(1, here)]), here),
    ]
    probes = probes_of(symbols, functions)
    assert probes.table().address.tolist() == [here]
    assert probes.health() == {"pseudo probes of functions without a symbol": 2}


def test_addresses_that_need_no_symbol_are_taken_as_they_are(symbols: Symbols) -> None:
    probes = probes_of(
        symbols, [(Function(guid(b"gone"), [Probe(1, 0x50), Probe(2, 0x5F)]), 0)], is_absolute=True
    )
    assert probes.table().address.tolist() == [0x50, 0x5F]
    assert not probes.health()


def test_probes_outside_all_code_are_lost_and_counted(link) -> None:
    """As of a section that was relocated otherwise than the code."""
    program = Program.open(link(".globl _start\n_start: nop\nnop\n"))
    ((start, end),), encoder = code_ranges(program.image).pairs(), Encoder()
    for at, index in ((start, 1), (end - 1, 2), (end, 3), (start - 2, 4), (start + (1 << 32), 5)):
        probes = [Probe(index, at), Probe(index, at + 1)]
        encoder.record(Function(guid(b"gone"), probes), 0, is_absolute=True)
    file = File(encoder.data, descriptor(guid(b"gone"), 7, b"gone"))
    probes = PseudoProbes(file, program.symbols, code_ranges(program.image))
    assert sorted(set(probes.table().index.tolist())) == [1, 2]
    assert probes.health() == {"pseudo probes that lie outside all code": 6}


def test_a_copy_that_the_linker_dropped_is_lost(symbols: Symbols) -> None:
    here = start_of(symbols, "f")
    copies = [(Function(guid(b"f"), [Probe(index, here)]), here) for index in (1, 2)]
    probes = probes_of(symbols, copies)
    assert probes.table().index.tolist() == [1]
    assert probes.health() == {"pseudo probes of functions without a symbol": 1}
    assert probes.table(probes.records(of_last_namesake=True)).index.tolist() == [1, 2]


def test_functions_that_nest_too_deep_are_lost_and_counted(symbols: Symbols) -> None:
    here = start_of(symbols, "f")
    nest = Function(guid(b"f"), [Probe(1, here)])
    for _ in range(DEEPEST_INLINING):
        nest = Function(guid(b"f"), [Probe(1, here)], [(2, nest)])
    deeper = replace(nest, inlined=[(2, nest)])
    probes = probes_of(symbols, [(nest, here)])
    assert len(probes.table()) == DEEPEST_INLINING + 1
    probes = probes_of(symbols, [(deeper, here)])
    assert len(probes.table()) == 0
    assert probes.health() == {"pseudo probes of functions inlined too deep": DEEPEST_INLINING + 2}


def test_a_record_of_neither_encoding_is_lost_and_counted(symbols: Symbols) -> None:
    data = guid(b"f").to_bytes(8, "little") + b"\2\0" + b"\1\x80\4" + b"\1\x00" + bytes(8)
    probes = PseudoProbes(File(data, descriptor(guid(b"f"), 7, b"f")), symbols, ANYWHERE)
    assert len(probes.table()) == 0
    assert probes.health() == {"pseudo probes that are encoded in no known way": 2}


def test_damage_loses_what_is_behind_it(symbols: Symbols) -> None:
    here = start_of(symbols, "f")
    encoder = Encoder()
    encoder.record(Function(guid(b"f"), [Probe(1, here)]), here)
    described = descriptor(guid(b"f"), 7, b"f")
    probes = PseudoProbes(File(encoder.data + bytes(9), described + bytes(5)), symbols, ANYWHERE)
    assert len(probes.table()) == 1
    assert probes.health() == {
        "bytes of .pseudo_probe that make no sense": 9,
        "bytes of .pseudo_probe_desc that make no sense": 5,
    }


def test_the_first_descriptor_of_a_name_counts_and_a_difference_is_told(symbols: Symbols) -> None:
    f, g = guid(b"f"), guid(b"g")
    rows = ((f, 1, b"f"), (g, 5, b"g"), (f, 2, b"f"), (g, 5, b"g"))
    here = start_of(symbols, "f")
    probes = probes_of(
        symbols, [(Function(f, [Probe(1, here)]), here)],
        descriptors=b"".join(descriptor(*row) for row in rows),
    )  # fmt: skip
    found = probes.descriptors
    assert dict(zip(found.guid.tolist(), found.checksum.tolist(), strict=True)) == {f: 1, g: 5}
    assert found.guid[found.is_ambiguous].tolist() == [f]
    assert found.rows(np.array([g, 3, f], np.uint64)).tolist() == [
        found.guid.tolist().index(g), -1, found.guid.tolist().index(f),
    ]  # fmt: skip


def test_a_function_without_descriptor_goes_by_its_guid(symbols: Symbols) -> None:
    here = start_of(symbols, "f")
    inner = Function(99, [Probe(1, here)])
    probes = probes_of(symbols, [(Function(guid(b"f"), [], [(3, inner)]), here)])
    tree = probes.table().tree
    assert [tree.name(node) for node in tree.path(1)] == ["f", "99"]


def test_call_probes_are_found_by_address(symbols: Symbols) -> None:
    here = start_of(symbols, "f")
    probes = [Probe(1, here), Probe(2, here, kind=2), Probe(3, here, kind=1), Probe(4, here + 1)]
    table = probes_of(symbols, [(Function(guid(b"f"), probes), here)]).table()
    addresses = np.array([here - 1, here, here + 1, here + 2], np.uint64)
    assert table.call_at(addresses).tolist() == [-1, 1, -1, -1]
    first, end = table.at(addresses)
    assert (end - first).tolist() == [0, 3, 1, 0]


def test_a_program_without_probes_has_none() -> None:
    program = Program.open(ROOT / "testbins/x86-64/interp.pie")
    assert not program.probes.present
    assert len(program.probes.table()) == 0
    assert not open_probes(program.debug_files, program.symbols).health()
