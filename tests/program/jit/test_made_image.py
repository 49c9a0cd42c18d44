from __future__ import annotations

from builders.jit import LOOP, OTHER

from lbr2pgo.program.jit.jit_program import JitLines, JitProgram
from lbr2pgo.program.jit.made_functions import JitFunction
from lbr2pgo.program.jit.made_image import JitImage, jit_image
from lbr2pgo.support.addresses import SLOT_SIZE, image_array


def shown(made: JitImage) -> dict[tuple[int, int], bytes]:
    """What each mapping shows, by time and run-time address."""
    file = made.image.file
    return {(m.time, m.start): file.read(m.file_offset, m.size) for m in made.mappings}


def test_code_is_where_it_was_and_the_later_one_behind_all() -> None:
    old, new = JitFunction(0x1000, 5, b"old", 1, LOOP), JitFunction(0x1002, 6, b"new", 7, OTHER)
    near, far = JitFunction(0x2000, 5, b"near", 1, LOOP), JitFunction(0x9_0000, 5, b"far", 2, LOOP)
    made = jit_image("jit-1.dump", "x86-64", [old, near, far, new])
    assert shown(made) == {
        (0, 0x1000): LOOP + bytes(0xFFB) + LOOP,
        (0, 0x9_0000): LOOP,
        (7, 0x1002): OTHER,
    }
    assert made.start == (0x1000, 0x2000, 0x9_0000, 1 << 47)
    assert all(segment.end <= SLOT_SIZE for segment in made.image.layout.segments)
    program = JitProgram(made)
    named = {name: program.address_of(name) for name in ("old", "near", "far", "new")}
    assert named == {"old": 0x1000, "near": 0x2000, "far": 0x9_0000, "new": 1 << 47}
    table = program.instructions_for(image_array([0x1000, 1 << 47]))
    assert table.address.tolist() == [0x1000, 0x1002, 0x1004, *(2**47 + i for i in (0, 1, 2, 4, 5))]


def test_names_alone_store_no_code() -> None:
    functions = [JitFunction(0x1000, 1 << 20, b"f"), JitFunction(0x7000_0000_0000, 8, b"g")]
    made = jit_image("perf-1.map", "x86-64", functions)
    assert not made.has_code
    assert made.image.file.size == 0
    assert [(m.start, m.size) for m in made.mappings] == [(0x1000, 1 << 20), (0x7000_0000_0000, 8)]
    program = JitProgram(made)
    assert [program.regions.label(i) for i in range(2)] == ["f", "g"]
    pieces = program.instructions_for(image_array([0x1004]))
    assert int(pieces.size.sum()) == 1 << 20
    assert not pieces.kind.any()


def test_lines_reach_to_the_next_one_and_to_the_functions_end() -> None:
    rows = ((1, 3, b"a.js"), (4, 7, b"b.js"))
    function = JitFunction(0x1000, 5, b"f", 1, LOOP, rows)
    other = JitFunction(0x1008, 5, b"g", 1, LOOP)
    made = jit_image("jit-1.dump", "x86-64", [function, other])
    lines = JitLines.of(made)
    found = lines.lines(image_array(range(0x1000, 0x100A)))
    files = [found.files[i] if i >= 0 else None for i in found.file.tolist()]
    assert files == [None, "a.js", "a.js", "a.js", "b.js", *[None] * 5]
    assert found.line.tolist() == [0, 3, 3, 3, 7, *[0] * 5]
    assert lines.present
    assert lines.missing_reason == ""
    none = JitLines.of(jit_image("jit-1.dump", "x86-64", [other]))
    assert not none.present
    assert none.lines(image_array([0x1008])).file.tolist() == [-1]
    assert "no lines" in none.missing_reason
