"""Several images as one program answer as each of them does."""

from __future__ import annotations

import numpy as np
import pytest
from builders.recordings import PIE, TESTBINS

from lbr2pgo.program.process import Part, Process
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import SLOT_SIZE, placed

FILES = (PIE, TESTBINS / "x86-64" / "shapes.pie")


@pytest.fixture(scope="module")
def process() -> Process:
    parts = [
        Part(Program.open(file), slot, file.name) for slot, file in ((0, FILES[0]), (3, FILES[1]))
    ]
    return Process(parts)


def test_functions_are_those_of_each(process: Process) -> None:
    regions = process.regions
    first = 0
    for part in process.parts:
        own = part.program.regions
        rows = np.arange(first, first + len(own))
        assert regions.start[rows].tolist() == placed(own.start, part.slot).tolist()
        assert regions.containing(placed(own.start, part.slot)).tolist() == rows.tolist()
        assert (regions.parent[rows] - first).tolist() == own.parent.tolist()
        assert regions.is_stub[rows].tolist() == own.is_stub.tolist()
        for row in range(len(own)):
            name = own.label(row) or f"{part.name}+{int(own.start[row]):#x}"
            assert regions.label(first + row) == name
            assert regions.name[first + row] == own.name[row]
            assert regions.aliases(first + row) == own.aliases(row)
        first += len(own)
    assert first == len(regions)


def test_the_first_file_has_a_name_that_both_have(process: Process) -> None:
    assert process.regions.by_name("main") == process.parts[0].program.regions.by_name("main")
    own = process.parts[1].program.regions
    name = next(name for name in own.name if name.startswith("_Z"))
    row = process.regions.by_name(name)
    assert row is not None
    assert process.regions.name[row] == name
    assert process.regions.by_name("no such name") is None
    assert process.file_of(int(process.regions.start[row]))[0] is process.parts[1].program


def test_code_and_graphs_are_those_of_each(process: Process) -> None:
    for part in process.parts:
        own = part.program.instructions_for(part.program.regions.start)
        table = process.instructions_for(placed(part.program.regions.start, part.slot))
        at = table.index_of(placed(own.address, part.slot))
        assert (at >= 0).all()
        assert table.kind[at].tolist() == own.kind.tolist()
        there = own.has_target
        assert table.target[at][there].tolist() == placed(own.target[there], part.slot).tolist()
        assert not table.target[at][~there].any()
        main = part.program.regions.by_name("main")
        assert main is not None
        row = process.regions.containing(
            placed(part.program.regions.start[main : main + 1], part.slot)
        )
        graph, alone = process.cfg(int(row[0])), part.program.cfg(main)
        assert graph.block_start.tolist() == placed(alone.block_start, part.slot).tolist()
        assert graph.edge_target.tolist() == alone.edge_target.tolist()


def test_lines_and_frames_are_those_of_each(process: Process) -> None:
    asked = [
        part.program.instructions_for(part.program.regions.start).address for part in process.parts
    ]
    both = np.concatenate(
        [placed(each, part.slot) for part, each in zip(process.parts, asked, strict=True)]
    )
    order = np.random.default_rng(1).permutation(len(both))
    debug = process.debug_info()
    assert debug.present
    assert debug.missing_reason == ""
    lines, frames = debug.lines(both[order]), debug.frames(both[order])
    found = {
        address: ((lines.files[file] if file >= 0 else None), line)
        for address, file, line in zip(
            both[order].tolist(), lines.file.tolist(), lines.line.tolist(), strict=True
        )
    }
    for part, addresses in zip(process.parts, asked, strict=True):
        own, alone = (
            part.program.debug_info().lines(addresses),
            part.program.debug_info().frames(addresses),
        )
        for i, address in enumerate(placed(addresses, part.slot).tolist()):
            file = int(own.file[i])
            assert found[address] == (own.files[file] if file >= 0 else None, int(own.line[i]))
        at = {address: i for i, address in enumerate(both[order].tolist())}
        for i, address in enumerate(placed(addresses, part.slot).tolist()[::7]):
            assert stack(frames, at[address]) == stack(alone, 7 * i)
        assert debug.origins(placed(addresses, part.slot)) == part.program.debug_info().origins(
            addresses
        )


def stack(frames, row: int) -> list[tuple[str, str, int, int]]:
    chosen = range(frames.offsets[row], frames.offsets[row + 1])
    return [
        (frames.names[frames.function[i]], frames.files[frames.file[i]], int(frames.line[i]),
         int(frames.start_line[i]))
        for i in chosen
    ]  # fmt: skip


def test_an_address_says_its_file(process: Process) -> None:
    assert process.part_of(0x1234).name == FILES[0].name
    assert process.part_of(3 * SLOT_SIZE + 0x1234).name == FILES[1].name
    assert process.file_of(3 * SLOT_SIZE + 0x1234)[1] == 0x1234
