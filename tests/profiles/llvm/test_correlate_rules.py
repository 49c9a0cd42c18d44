"""Sample profiles: each of LLVM's definitions on a few instructions."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from builders.elf import Function
from builders.flows import Trace, flow_of
from builders.frames import PlainFrame, places_with

from lbr2pgo.profiles.llvm import text as llvm_text
from lbr2pgo.profiles.llvm.correlate import sample_profile
from lbr2pgo.program.dwarf.debug_info import DwarfFunctions, ScopedPlaces
from lbr2pgo.support.arrays import U64

BASE = 0x2000
CODE = bytes.fromhex(
    "90"  # 2000 nop           f, line 11, in it g (line 25) inlined
    "7406"  # 2001 je 2009     f, line 11
    "6690"  # 2003 xchg        f, line 12
    "e8f6ffffff"  # 2005 call 2000
    "c3"  # 200a ret           f, line 13
    "90"  # 200b nop           h, line 31
    "c3"  # 200c ret           h, line 31
)
F, H = Function("f", BASE, 0xB), Function("h", BASE + 0xB, 2)
PLACES: dict[int, list[PlainFrame]] = {
    0x0: [("f", 11, 10, 0), ("g", 25, 20, 0)],
    0x1: [("f", 11, 10, 0)],
    0x3: [("f", 12, 10, 0)],
    0x5: [("f", 12, 10, 2)],
    0xA: [("f", 13, 10, 0)],
    0xB: [("h", 31, 30, 0)],
    0xC: [("h", 31, 30, 0)],
}


@dataclass
class Debug:
    """Debug information of the code above, in which a test may move things."""

    frames_at: Mapping[int, Sequence[PlainFrame]]
    ranges: Sequence[tuple[int, int, str]] = ((0, 0xB, "f"), (0xB, 0xD, "h"))

    def places(self, addresses: U64) -> tuple[ScopedPlaces, np.ndarray]:
        found = [self.frames_at.get(int(address) - BASE, ()) for address in addresses]
        return places_with(found), np.arange(len(addresses))

    def functions_for(self, addresses: U64) -> DwarfFunctions:
        starts, ends, names = zip(*self.ranges, strict=True)
        unique = tuple(dict.fromkeys(names))
        return DwarfFunctions(
            np.array([BASE + start for start in starts], np.uint64),
            np.array([BASE + end for end in ends], np.uint64),
            np.array([unique.index(name) for name in names], np.int32), unique,
        )  # fmt: skip

    def release(self) -> None:
        """Nothing was read."""


def profile_text(
    where: Path,
    *traces: Trace,
    debug: Debug | None = None,
    symbols: Sequence[Function] = (F, H),
) -> str:
    flow, program = flow_of(where, CODE, BASE, traces, symbols)
    profile, located = sample_profile(flow, program, debug or Debug(PLACES))  # type: ignore[arg-type]
    assert len(located) == len(flow.judged.runs)
    stream = io.BytesIO()
    llvm_text.write(profile, stream)
    return stream.getvalue().decode()


def test_each_definition_on_a_few_instructions(tmp_path: Path) -> None:
    text = profile_text(
        tmp_path, (None, 0, 1, 6), (5, 0, 0xA, 1), (5, 0, 5, 3), (None, 3, 5, 2),
        (0xA, 0xB, None, 9),
    )  # fmt: skip
    # Executed: 10 times up to 2001, 6 up to 2005, once 200a.
    assert text.splitlines() == [
        "f:73:10",  # counts times bytes, what is inlined included; calls from anywhere
        " 1: 10",  # of the branch: what is inlined has its own lines
        " 2: 6",
        " 2.1: 6 f:4",
        " 3: 9 h:9",  # ran once, but a line runs as often as it calls
        " 1: g:10",
        "  5: 10",
        "h:0:9",  # called, but no fall-through was seen in it
    ]


def test_a_location_has_its_largest_count(tmp_path: Path) -> None:
    moved = {**PLACES, 0x3: [("f", 11, 10, 0)], 0xA: [("f", 12, 10, 2)]}
    text = profile_text(tmp_path, (None, 0, 1, 6), (None, 0, 5, 3), debug=Debug(moved))
    assert text.splitlines() == ["f:48:9", " 1: 9", " 2.1: 3", " 1: g:9", "  5: 9"]


def test_code_that_did_not_run_in_a_function_that_did_is_cold(tmp_path: Path) -> None:
    text = profile_text(tmp_path, (None, 0, 1, 6))
    assert text.splitlines() == [
        "f:18:6", " 1: 6", " 2: 0", " 2.1: 0", " 3: 0", " 1: g:6", "  5: 6",
    ]  # fmt: skip


def test_a_duplicated_instruction_counts_for_all_its_copies(tmp_path: Path) -> None:
    by_four = 1 | 8 << 1  # no base discriminator, duplication factor 4
    copies = {**PLACES, 0x3: [("f", 12, 10, by_four)], 0x5: [("f", 12, 10, 0)]}
    text = profile_text(tmp_path, (None, 0, 5, 3), debug=Debug(copies))
    assert " 2: 12" in text.splitlines()
    assert text.startswith("f:30:3"), "totals are of instructions"


def test_a_line_before_the_function_wraps_around(tmp_path: Path) -> None:
    above = {**PLACES, 0x1: [("f", 7, 10, 0)]}
    assert " 65533: 6" in profile_text(tmp_path, (None, 0, 1, 6), debug=Debug(above)).splitlines()


def test_inlined_copies_are_told_apart_by_their_call(tmp_path: Path) -> None:
    inlined = {
        0x0: [("f", 11, 10, 0), ("g", 25, 20, 0), ("k", 41, 40, 0)],
        0x1: [("f", 11, 10, 2), ("g", 25, 20, 0)],
        0x3: [("f", 11, 10, 0), ("g", 26, 20, 0), ("k", 41, 40, 0)],
        0x5: [("f", 12, 10, 0)],
    }
    text = profile_text(tmp_path, (None, 0, 1, 6), (None, 0, 5, 3), (5, 0, None, 2),
                        debug=Debug(inlined))  # fmt: skip
    assert text.splitlines() == [
        "f:48:11", " 2: 3 f:2", " 1: g:15", "  5: k:9", "   1: 9", "  6: k:6", "   1: 3",
        " 1.1: g:18", "  5: 9",
    ]  # fmt: skip


def test_what_is_inlined_into_code_without_a_name_is_cut_off(tmp_path: Path) -> None:
    nameless = {**PLACES, 0x0: [("f", 11, 10, 0), ("", 25, 0, 0), ("g", 26, 20, 0)]}
    text = profile_text(tmp_path, (None, 0, 1, 6), debug=Debug(nameless))
    assert "g" not in text
    assert text.splitlines()[:2] == ["f:18:6", " 1: 6"]


def test_code_without_debug_information_is_in_no_profile(tmp_path: Path) -> None:
    bare = {address: frames for address, frames in PLACES.items() if address >= 0xB}
    text = profile_text(tmp_path, (None, 0, 1, 6), (0xA, 0xB, 0xC, 1), debug=Debug(bare))
    assert text.splitlines() == ["h:2:1", " 1: 1", "f:0:6"]


def test_a_branch_into_a_function_is_no_call(tmp_path: Path) -> None:
    text = profile_text(tmp_path, (5, 1, 1, 6))
    assert text.splitlines()[0] == "f:12:0"
    assert "f:6" not in text


def test_only_the_piece_with_the_functions_symbol_is_its_entry(tmp_path: Path) -> None:
    split = Debug(PLACES, ((0, 0x3, "f"), (0x3, 0xB, "f"), (0xB, 0xD, "h")))
    text = profile_text(tmp_path, (None, 0, 1, 6), (0xA, 3, 5, 2), debug=split)
    assert text.startswith("f:32:6\n")
    other = profile_text(
        tmp_path, (None, 0, 1, 6), (0xA, 3, 5, 2), debug=split,
        symbols=(Function("f.cold", BASE, 3), Function("f.llvm.17", BASE + 3, 8), H),
    )  # fmt: skip
    assert other.startswith("f:32:2\n"), "the suffix .llvm.17 is no part of the name"


def test_initialisers_of_one_name_are_left_out(tmp_path: Path) -> None:
    names = {"f": "__tls_init", "g": "__cxx_global_var_init.3"}
    places = {a: [(names.get(f[0], f[0]), *f[1:]) for f in frames] for a, frames in PLACES.items()}
    ranges = ((0, 0xB, "__tls_init"), (0xB, 0xD, "h"))
    assert profile_text(tmp_path, (None, 0, 1, 6), debug=Debug(places, ranges)) == ""
    inner = {**PLACES, 0x0: [PLACES[0x0][0], ("__cxx_global_var_init.3", 25, 20, 0)]}
    text = profile_text(tmp_path, (None, 0, 1, 6), debug=Debug(inner))
    assert "__cxx" not in text
    assert text.startswith("f:18:6")


def test_runs_with_and_without_a_location_are_told_apart(tmp_path: Path) -> None:
    traces = [(None, 0, 1, 6), (None, 3, 5, 2), (None, 0xB, 0xC, 1), (None, 1, 0, 4)]
    flow, program = flow_of(tmp_path, CODE, BASE, traces, (F, H))
    bare = {0x5: PLACES[0x5], 0xC: PLACES[0xC]}
    _, located = sample_profile(flow, program, Debug(bare))  # type: ignore[arg-type]
    starts = (flow.judged.runs.start - BASE).tolist()
    found = dict(zip(zip(starts, flow.judged.valid, strict=True), located, strict=True))
    assert found == {(0, True): False, (1, False): False, (3, True): True, (0xB, True): True}


def test_a_location_that_did_not_run_locates_no_other_code(tmp_path: Path) -> None:
    flow, program = flow_of(tmp_path, CODE, BASE, [(None, 0, 1, 6), (None, 0xB, 0xC, 1)], (F, H))
    _, located = sample_profile(flow, program, Debug({0xA: PLACES[0xA]}))  # type: ignore[arg-type]
    assert not located.any()
