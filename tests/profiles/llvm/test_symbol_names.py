"""Functions by the names of their symbols; whole profiles are compared in `profiles/afdo`."""

from __future__ import annotations

import numpy as np
from builders.frames import frames_of, places_with

from lbr2pgo.profiles.llvm.symbol_names import outermost_by
from lbr2pgo.program.dwarf.debug_info import DwarfFunctions

FUNCTIONS = DwarfFunctions(
    np.array([0x10, 0x20, 0x30], np.uint64),
    np.array([0x18, 0x28, 0x38], np.uint64),
    np.array([1, 0, 1], np.int32),
    ("f.cold", "f_symbol"),
)
G, IN_F = ("g", 25, 20, 0), ("f", 11, 10, 0)


def test_functions_that_are_not_inlined_take_the_names_of_their_ranges() -> None:
    found = places_with([[IN_F], [IN_F, G], [("h", 7, 6, 0)], []])
    addresses = np.array([0x10, 0x11, 0x30, 0x40, 0x50], np.uint64)
    named = outermost_by(found, FUNCTIONS, addresses, np.array([0, 0, 1, 2, 3]))
    renamed = ("f_symbol", *IN_F[1:])
    assert list(frames_of(named)) == [[renamed], [renamed, G], [("h", 7, 6, 0)], []]


def test_places_before_the_first_address_have_no_code() -> None:
    found = places_with([[IN_F], [IN_F], [IN_F]])
    named = outermost_by(found, FUNCTIONS, np.array([0x20, 0x48], np.uint64), np.array([1, 2]))
    assert list(frames_of(named)) == [[IN_F], [("f.cold", *IN_F[1:])], [IN_F]]


def test_a_function_whose_parts_have_several_names_becomes_several() -> None:
    found = places_with([[IN_F, G], [IN_F, G, G], [IN_F, G]])
    addresses = np.array([0x20, 0x10, 0x12, 0x48], np.uint64)
    named = outermost_by(found, FUNCTIONS, addresses, np.array([0, 1, 1, 2]))
    cold, hot = ("f.cold", *IN_F[1:]), ("f_symbol", *IN_F[1:])
    assert list(frames_of(named)) == [[cold, G], [hot, G, G], [IN_F, G]]
    assert named.is_used().all()


def test_code_with_a_line_but_without_a_function_is_in_that_of_its_range() -> None:
    found = places_with([[("", 25, 0, 2)], [("", 26, 0, 0)]])
    named = outermost_by(found, FUNCTIONS, np.array([0x10, 0x48], np.uint64), np.array([0, 1]))
    assert list(frames_of(named)) == [[("f_symbol", 25, 0, 2)], [("", 26, 0, 0)]]


def test_places_without_functions_have_no_name() -> None:
    found = places_with([[], []])
    named = outermost_by(found, FUNCTIONS, np.array([0x10, 0x20], np.uint64), np.array([0, 1]))
    assert list(frames_of(named)) == [[], []]
