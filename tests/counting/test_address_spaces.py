"""Where the image is, by process and time; file, image and run-time addresses all differ."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import numpy as np
import pytest
from builders.sources import BASE, CODE, CODE_END, LAYOUT, mapping
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.counting.address_spaces import (
    ANY_PID,
    AddressSpaces,
    Piece,
    joined,
    loaded,
    overlaid,
    pieces_of,
    without,
)
from lbr2pgo.counting.find_image import ImageMatch
from lbr2pgo.model.address_space_events import KERNEL_PID, Comm, Exit, Fork, Mmap, SpaceEvent
from lbr2pgo.program.elf.layout import ImageLayout, Segment

MATCH = ImageMatch((LAYOUT.path,), "path")


def spaces(*events: SpaceEvent, layout: ImageLayout = LAYOUT) -> AddressSpaces:
    return AddressSpaces(events, layout, MATCH)


def space_of(found: AddressSpaces, pid: int, time: int) -> int:
    return int(found.spaces_of(np.array([pid], np.int32), np.array([time], np.uint64))[0])


def image_of(found: AddressSpaces, pid: int, time: int, address: int) -> int | None:
    """Image address of one run-time address, None outside."""
    space = space_of(found, pid, time)
    if space < 0:
        return None
    image, inside = found.to_image(space, np.array([address], np.uint64))
    return int(image[0]) if inside[0] else None


def test_a_mapping_that_starts_in_the_page_before_the_segment() -> None:
    assert mapping().file_offset < LAYOUT.segments[1].file_offset
    assert pieces_of(mapping(), LAYOUT) == (Piece(BASE + CODE, BASE + CODE_END, BASE),)


def test_a_mapping_of_part_of_the_segment() -> None:
    part = mapping(start=BASE + 0x3000, file_offset=0x1000, length=0x400)
    assert pieces_of(part, LAYOUT) == (Piece(BASE + 0x3000, BASE + 0x3400, BASE),)


def test_a_mapping_that_would_go_on_behind_the_last_address_ends_there() -> None:
    last = (1 << 64) - 1
    (low,) = pieces_of(mapping(), LAYOUT)
    up = last - low.end + 0x100
    high = mapping(start=mapping().start + up)
    assert pieces_of(high, LAYOUT) == (Piece(low.start + up, last, low.bias + up),)
    found = spaces(high)
    assert found.bounds.shape == (0, 2), "nobody asked yet"
    assert space_of(found, 10, 0) == 0
    assert found.bounds.tolist() == [[low.start + up, last]]
    assert pieces_of(mapping(start=last), LAYOUT) == ()


def test_a_mapping_over_several_segments_has_a_piece_for_each_with_code() -> None:
    segments = (
        Segment(0x1000, 0x0, 0x1000, 0x1000, True),
        Segment(0x4000, 0x1000, 0x1000, 0x1000, False),
        Segment(0x7000, 0x2000, 0x800, 0x900, True),
    )
    layout = replace(LAYOUT, segments=segments)
    whole = Mmap(1, 1, 0, BASE, 0x3000, 0, LAYOUT.path)
    assert pieces_of(whole, layout) == (
        Piece(BASE, BASE + 0x1000, BASE - 0x1000),
        Piece(BASE + 0x2000, BASE + 0x2800, BASE + 0x2000 - 0x7000),
    )


@pytest.mark.parametrize(("offset", "length"), [(0x1800, 0x1000), (0, 0x800), (0x9000, 0x1000)])
def test_a_mapping_without_code_has_no_piece(offset: int, length: int) -> None:
    assert pieces_of(Mmap(1, 1, 0, BASE, length, offset, LAYOUT.path), LAYOUT) == ()


def test_memory_behind_the_file_is_no_piece() -> None:
    layout = replace(LAYOUT, segments=(Segment(0x1000, 0, 0x100, 0x5000, True),))
    assert pieces_of(Mmap(1, 1, 0, BASE, 0x5000, 0, "x"), layout) == (
        Piece(BASE, BASE + 0x100, BASE - 0x1000),
    )


WHOLE = (Piece(10, 20, 3), Piece(30, 40, 4))


@pytest.mark.parametrize(
    ("start", "end", "left"),
    [
        (0, 10, WHOLE),
        (20, 30, WHOLE),
        (40, 99, WHOLE),
        (0, 99, ()),
        (10, 20, (Piece(30, 40, 4),)),
        (5, 15, (Piece(15, 20, 3), Piece(30, 40, 4))),
        (15, 35, (Piece(10, 15, 3), Piece(35, 40, 4))),
        (12, 13, (Piece(10, 12, 3), Piece(13, 20, 3), Piece(30, 40, 4))),
    ],
)
def test_a_later_mapping_takes_what_it_overlaps(
    start: int, end: int, left: tuple[Piece, ...]
) -> None:
    assert without(WHOLE, start, end) == left


def test_pieces_that_continue_each_other_are_joined() -> None:
    apart = (Piece(20, 30, 1), Piece(10, 20, 1), Piece(30, 40, 2), Piece(41, 50, 2))
    assert joined(apart) == (Piece(10, 30, 1), Piece(30, 40, 2), Piece(41, 50, 2))
    assert joined((*apart, Piece(50, 60, 2)))[-1] == Piece(41, 60, 2)


def test_a_segment_mapped_in_two_parts_is_one_piece() -> None:
    halves = (
        mapping(length=0x1000),
        mapping(start=BASE + 0x3000, file_offset=0x1000, length=0x1000),
    )
    found = spaces(*halves)
    assert space_of(found, 10, 0) == 0
    assert found.pieces == [pieces_of(mapping(), LAYOUT)]


@pytest.mark.parametrize(
    ("space", "pid", "time", "base"),
    [
        ((mapping(),), 10, 0, BASE),
        ((mapping(time=5),), 10, 4, None),
        ((mapping(time=5),), 10, 5, BASE),
        ((mapping(),), 11, 5, None),
        ((mapping(), mapping(11, 0x1000)), 11, 5, 0x1000),
        # A child keeps what it inherited when its parent goes on.
        ((mapping(), Fork(11, 10, 11, 3), Comm(10, 10, 4, "x", is_exec=True)), 11, 9, BASE),
        ((mapping(), Fork(11, 10, 11, 3)), 11, 2, None),
        ((Fork(11, 10, 11, 3), mapping(time=4)), 11, 9, None),
        ((mapping(), Fork(11, 10, 11, 3), Fork(12, 11, 12, 4)), 12, 9, BASE),
        # A pid is used again.
        ((mapping(), Exit(10, 10, 3), Fork(10, 1, 10, 5)), 10, 9, None),
        ((mapping(), mapping(11, 0x1000, time=1), Fork(10, 11, 10, 5)), 10, 9, 0x1000),
        ((mapping(), Fork(10, 10, 12, 3)), 10, 9, BASE),
        ((mapping(), Comm(10, 10, 3, "x")), 10, 9, BASE),
        ((mapping(), Comm(10, 10, 3, "x", is_exec=True)), 10, 2, BASE),
        ((mapping(), Comm(10, 10, 3, "x", is_exec=True)), 10, 3, None),
        ((mapping(), Comm(10, 10, 3, "x", is_exec=True), mapping(base=7 << 20, time=3)),
         10, 3, 7 << 20),
        ((mapping(time=(1 << 64) - 1),), 10, (1 << 64) - 1, BASE),
    ],
)  # fmt: skip
def test_which_view_a_process_had(
    space: tuple[SpaceEvent, ...], pid: int, time: int, base: int | None
) -> None:
    expected = None if base is None else CODE
    assert image_of(spaces(*space), pid, time, (base or BASE) + CODE) == expected


def test_a_library_closed_and_another_opened_in_its_place() -> None:
    other = mapping(time=5, path="/lib/other.so", start=BASE + 0x3000, length=0x1000)
    found = spaces(mapping(), other, mapping(base=2 * BASE, time=8))
    assert image_of(found, 10, 4, BASE + 0x3000) == 0x3000
    assert image_of(found, 10, 5, BASE + 0x3000) is None
    assert image_of(found, 10, 5, BASE + CODE) == CODE
    assert image_of(found, 10, 8, 2 * BASE + CODE) == CODE
    assert image_of(found, 10, 8, BASE + CODE) == CODE, "the first mapping is still there"


def test_data_mapped_over_code_hides_it_but_is_not_the_image_itself() -> None:
    found = spaces(mapping(), mapping(time=2, executable=False))
    assert image_of(found, 10, 1, BASE + CODE) == CODE
    assert image_of(found, 10, 2, BASE + CODE) is None
    assert space_of(spaces(mapping(executable=False)), 10, 2) == -1


def test_the_image_mapped_twice_in_one_process() -> None:
    found = spaces(mapping(), mapping(base=2 * BASE))
    for base in (BASE, 2 * BASE):
        assert image_of(found, 10, 0, base + CODE) == CODE


def test_one_image_under_two_paths() -> None:
    maps = [mapping(), mapping(11, path="/proc/self/exe")]
    found = AddressSpaces(maps, LAYOUT, ImageMatch((LAYOUT.path, "/proc/self/exe"), "build-id"))
    assert space_of(found, 10, 0) == space_of(found, 11, 0) == 0


def test_equal_views_are_one_space() -> None:
    events: list[SpaceEvent] = [mapping()]
    events += [Fork(pid, 10, pid, pid) for pid in range(11, 500)]
    found = spaces(*events)
    pids = np.arange(10, 500, dtype=np.int32)
    assert found.spaces_of(pids, np.full(490, 1000, np.uint64)).tolist() == [0] * 490
    assert len(found.pieces) == 1


def test_unknown_processes_see_all_mappings_and_no_other_files() -> None:
    other = mapping(11, path="/lib/other.so", time=3)
    found = spaces(mapping(), other, mapping(12, 2 * BASE, time=5))
    for time in (0, 4, 5):
        assert image_of(found, ANY_PID, time, BASE + CODE) == CODE
        assert image_of(found, ANY_PID, time, 2 * BASE + CODE) == CODE


def test_unknown_processes_see_the_later_of_two_mappings() -> None:
    found = spaces(mapping(), mapping(11, BASE + 0x800, time=1))
    assert image_of(found, ANY_PID, 0, BASE + CODE + 0x7FF) == CODE + 0x7FF
    assert image_of(found, ANY_PID, 0, BASE + CODE + 0x800) == CODE


def test_the_kernels_own_mappings_belong_to_no_process() -> None:
    found = spaces(mapping(KERNEL_PID, time=3), mapping(time=5))
    assert image_of(found, ANY_PID, 0, BASE + CODE) == CODE
    assert len(found.pieces) == 1


layers = st.lists(
    st.builds(lambda a, n, bias: Piece(a, a + n, bias), st.integers(0, 30), st.integers(1, 12),
              st.integers(0, 3)), max_size=12,
)  # fmt: skip


@given(layers)
def test_layers_against_painting_byte_by_byte(drawn: list[Piece]) -> None:
    painted = {a: piece.bias for piece in drawn for a in range(piece.start, piece.end)}
    seen = overlaid(drawn)
    assert {a: piece.bias for piece in seen for a in range(piece.start, piece.end)} == painted
    assert sum(piece.end - piece.start for piece in seen) == len(painted)
    assert list(seen) == sorted(seen)


@pytest.mark.parametrize("pids", [1, 20_000])
def test_many_mappings_take_little_time_and_memory(pids: int) -> None:
    """A library opened and closed again and again, and a machine full of processes."""
    events = [mapping(10 + i % pids, BASE + i * 0x10000, time=i) for i in range(20_000)]
    started = perf_counter()
    found = spaces(*events)
    assert perf_counter() - started < 10
    for last in (19_999, 300, 10_000):
        assert image_of(found, 10 + last % pids, last, BASE + last * 0x10000 + CODE) == CODE
    assert sum(map(len, found.pieces)) <= 3 * 64


def test_as_linked_holds_for_every_process() -> None:
    found = AddressSpaces.fixed(LAYOUT)
    assert found.pieces == [loaded(LAYOUT, 0)] == [(Piece(CODE, CODE_END, 0),)]
    for pid in (ANY_PID, 0, 10):
        assert image_of(found, pid, 0, CODE) == CODE


def test_an_image_without_code_is_nowhere() -> None:
    found = AddressSpaces.fixed(replace(LAYOUT, segments=()))
    assert space_of(found, 10, 0) == -1
    assert found.bounds.shape == (0, 2)


def test_bounds_hold_all_pieces_and_never_zero() -> None:
    found = spaces(mapping(), mapping(base=2 * BASE, time=1))
    assert [space_of(found, 10, time) for time in (0, 1)] == [0, 1]
    assert found.bounds.tolist() == [
        [BASE + CODE, BASE + CODE_END], [BASE + CODE, 2 * BASE + CODE_END],
    ]  # fmt: skip
    at_zero = replace(LAYOUT, segments=(Segment(0, 0, 64, 64, True),))
    assert AddressSpaces.fixed(at_zero).bounds.tolist() == [[1, 64]]


def test_an_image_below_its_linked_address() -> None:
    fixed = replace(LAYOUT, segments=(Segment(0x400000, 0, 0x1000, 0x1000, True),))
    found = spaces(Mmap(10, 10, 0, 0x10000, 0x1000, 0, LAYOUT.path), layout=fixed)
    assert image_of(found, 10, 0, 0x10010) == 0x400010


def test_addresses_at_the_edges_of_pieces() -> None:
    found = spaces(mapping())
    assert space_of(found, 10, 0) == 0
    addresses = [BASE + CODE - 1, BASE + CODE, BASE + CODE_END - 1, BASE + CODE_END, 0, 2**64 - 1]
    image, piece = found.to_pieces(0, np.array(addresses, np.uint64))
    assert piece.tolist() == [-1, 0, 0, -1, -1, -1]
    assert image.tolist() == [0, CODE, CODE_END - 1, 0, 0, 0]


def test_addresses_of_several_spaces_at_once() -> None:
    """A negative space is of samples that don't map the image."""
    moved = mapping(pid=11, base=BASE + 0x100000)
    found = spaces(mapping(), moved)
    one, other = space_of(found, 10, 0), space_of(found, 11, 0)
    asked = [BASE + CODE, BASE + 0x100000 + CODE]
    image, inside = found.to_image(
        np.array([one, other, -1, other]), np.array([asked, asked, asked, asked], np.uint64)
    )
    assert inside.tolist() == [[True, False], [False, True], [False, False], [False, True]]
    assert image.tolist() == [[CODE, 0], [0, CODE], [0, 0], [0, CODE]]


SMALL = replace(LAYOUT, segments=(Segment(100, 8, 40, 40, True),))
events = st.one_of(
    st.builds(
        lambda pid, start, length, offset, is_image: Mmap(
            pid, pid, 0, start * 4, length * 4, offset * 4, SMALL.path if is_image else "other"
        ),
        st.integers(1, 3), st.integers(0, 40), st.integers(1, 20), st.integers(0, 12),
        st.booleans(),
    ),
    st.builds(lambda a, b: Fork(a, b, a, 0), st.integers(1, 3), st.integers(1, 3)),
    st.builds(lambda a, b: Comm(a, a, 0, "x", b), st.integers(1, 3), st.booleans()),
)  # fmt: skip


def apply(memory: dict[int, dict[int, int]], event: SpaceEvent) -> None:
    """What an event does to memory, byte by byte: pid to run-time address to image address."""
    mine = memory.setdefault(event.pid, {})
    if isinstance(event, Fork) and event.pid != event.parent_pid:
        memory[event.pid] = dict(memory.get(event.parent_pid, {}))
    elif isinstance(event, Comm) and event.is_exec:
        mine.clear()
    elif isinstance(event, Mmap):
        for i in range(event.length):
            mine.pop(event.start + i, None)
            if event.path == SMALL.path and 8 <= event.file_offset + i < 48:
                mine[event.start + i] = event.file_offset + i - 8 + 100


@settings(max_examples=150, deadline=None)
@given(st.lists(events, max_size=12))
def test_random_histories_against_memory_byte_by_byte(drawn: list[SpaceEvent]) -> None:
    history = [event._replace(time=time) for time, event in enumerate(drawn)]
    found = AddressSpaces(history, SMALL, MATCH)
    memory: dict[int, dict[int, int]] = {}
    addresses = np.arange(260, dtype=np.uint64)
    for time, event in enumerate(history):
        apply(memory, event)
        for pid, expected in memory.items():
            space = space_of(found, pid, time)
            seen: dict[int, int] = {}
            if space >= 0:
                image, inside = found.to_image(space, addresses)
                seen = dict(zip(addresses[inside].tolist(), image[inside].tolist(), strict=True))
            assert seen == expected
