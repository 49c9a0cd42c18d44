"""Fdata of one build for another, on real programs and on code small enough to be read."""

from __future__ import annotations

from io import BytesIO

import pytest
from builders.bolt import Assemble, function, lines_of
from builders.fixtures import ROOT

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.bolt.fdata import fdata_text
from lbr2pgo.profiles.bolt.fdata.fdata_tables import Fdata
from lbr2pgo.profiles.bolt.fdata.written import overlap
from lbr2pgo.profiles.carried.account import Account, Way
from lbr2pgo.profiles.carried.carried_fdata import carried_fdata
from lbr2pgo.profiles.registry import output
from lbr2pgo.program.program import Program

LEAF = function("f", "ret") + function("g", "ret")
PROGRAMS = ("x86-64-interp.pie", "x86-64-interp.static")


def fdata(text: str) -> Fdata:
    return fdata_text.parse(BytesIO(text.encode()), "test")


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Fdata, Program]]:
    """Two builds of one program with the exact counts of the same run."""
    found = {}
    for name in PROGRAMS:
        binary = ROOT / "testbins" / name.replace("x86-64-", "x86-64/")
        counts = ROOT / "testbins/recordings" / f"{name}.exact.npz"
        path = tmp_path_factory.mktemp("exact") / "fdata"
        convert(ConvertOptions((counts,), binary, (output("fdata", path),)))
        found[name] = fdata_text.read(path), Program.open(binary)
    return found


@pytest.mark.parametrize(("old", "new"), [PROGRAMS, PROGRAMS[::-1]])
def test_it_is_nearly_what_the_other_build_recorded(exact, old: str, new: str) -> None:
    (mine, before), (theirs, after) = exact[old], exact[new]
    carried, account = carried_fdata(mine, before, after)
    assert account.carried() > 0.985
    near, stale = overlap(theirs, carried), overlap(theirs, mine)
    assert near is not None
    assert stale is not None
    assert stale.similarity < 0.2
    assert near.similarity > 0.98


def test_for_the_same_build_it_stays_as_it_is(exact) -> None:
    for profile, program in exact.values():
        carried, account = carried_fdata(profile, program, program)
        assert lines_of(carried) == lines_of(profile)
        assert set(account.total()) == {Way.SAME}


OLD = "cmp $5, %eax\nje 1f\nmov %ebx, %edi\ncall f\ninc %edi\n"
OLD += "1: cmp %ecx, %edi\njne 2f\ncall g\n2: ret"
NEW = OLD.replace("mov %ebx", "nop\nnop\nmov %ebx").replace("je 1f", "ja 3f\n3: je 1f", 1)
ROWS = """\
1 _start 3 1 _start 5 0 60
1 _start 3 1 _start e 7 40
1 _start 7 1 f 0 0 60
1 _start c 1 _start e 0 60
1 _start 10 1 _start 12 0 90
1 _start 10 1 _start 17 9 10
1 _start 12 1 g 0 0 90
1 f 0 1 [unknown] 0 0 3
0 [unknown] 0 1 _start 0 0 100
"""


def carried(old: Program, new: Program, text: str = ROWS) -> tuple[list[str], Account]:
    made, account = carried_fdata(fdata(text), old, new)
    return sorted(lines_of(made)), account


def test_edges_and_calls_go_where_their_blocks_are(assemble: Assemble) -> None:
    old, new = (assemble(function("_start", body) + LEAF) for body in (OLD, NEW))
    rows, account = carried(old, new)
    assert account.carried() == 1.0
    assert not account.dropped
    assert "1 _start 5 1 _start 12 7 40" in rows  # the new block's branch decides
    assert "1 _start b 1 f 0 0 60" in rows
    assert "1 _start 16 1 g 0 0 90" in rows
    assert "0 [unknown] 0 1 _start 0 0 100" in rows
    assert "1 _start 3 1 _start 5 0 100" in rows  # through the new block


def test_samples_and_loads_too(assemble: Assemble) -> None:
    old, new = (assemble(function("_start", body) + LEAF) for body in (OLD, NEW))
    text = "no_lbr cycles:\n1 _start 12 5\n1 f 0 7\n4 _start 12 4 data 0 2\n"
    made, account = carried_fdata(fdata(text), old, new)
    stream = BytesIO()
    fdata_text.write(made, stream)
    assert stream.getvalue().decode() == text.replace("_start 12", "_start 16")
    assert account.total() == {Way.PLACE: 7, Way.SAME: 7}


def test_calls_of_a_function_with_another_name(assemble: Assemble) -> None:
    body = "\n".join(f"add ${i}, %eax\nxor %eax, %edi" for i in range(1, 12)) + "\nret"
    old = assemble(function("_start", OLD) + function("f", body) + function("g", "ret"))
    new = assemble(
        function("_start", NEW.replace("call f", "call h"))
        + function("h", body)
        + function("g", "ret")
    )
    rows, account = carried(old, new)
    assert account.renamed == {"f": "h"}
    assert "1 _start b 1 h 0 0 60" in rows
    assert "1 h 0 1 [unknown] 0 0 3" in rows


def test_what_is_gone_is_named_and_no_row_leads_there(assemble: Assemble) -> None:
    old = assemble(function("_start", OLD) + LEAF)
    new = assemble(function("_start", NEW.replace("call g", "call f")) + function("f", "ret"))
    rows, account = carried(old, new)
    assert account.gone == {"g"}
    assert account.lost() == {"_start": 90}
    assert not any(" g " in row for row in rows)


def test_a_function_of_which_little_is_left_is_dropped_with_its_calls(assemble: Assemble) -> None:
    caller = "call f\nret"
    long = "inc %eax\nje 1f\nnot %eax\n1: ret"
    other = "mov (%rsi), %rdi\nshl $2, %rdi\nlea (%rdi), %r9\nimul %rdi, %r9\nret"
    old, new = (
        assemble(function("_start", caller) + function("f", body)) for body in (long, other)
    )
    text = "1 _start 0 1 f 0 0 50\n1 f 2 1 f 4 0 30\n1 f 2 1 f 6 0 20\n1 f 4 1 f 6 0 30\n"
    rows, account = carried(old, new, text)
    assert account.dropped == {"f"}
    assert rows == []


def test_a_flow_tells_what_was_lost(assemble: Assemble) -> None:
    """More blocks are new than a path leads through: what lies around tells how often they ran."""
    old = "cmp $5, %eax\nje 1f\nmov %ebx, %edi\ncall f\n1: cmp %ecx, %edi\njne 2f\ncall g\n2: ret"
    new = old.replace("je 1f", "je 1f\n" + "".join(f"cmp ${i}, %esi\nja 1f\n" for i in range(9)))
    first, second = (assemble(function("_start", body) + LEAF) for body in (old, new))
    rows, account = carried(
        first, second,
        "0 [unknown] 0 1 _start 0 0 100\n1 _start 3 1 _start 5 0 60\n1 _start 3 1 _start c 0 40\n"
        "1 _start 7 1 f 0 0 60\n1 _start 7 1 _start c 0 60\n1 _start e 1 _start 10 0 90\n"
        "1 _start e 1 _start 15 0 10\n1 _start 10 1 g 0 0 90\n",
    )  # fmt: skip
    assert account.lost() == {"_start": 60}
    assert "1 _start 3 1 _start 5 0 60" in rows  # nine blocks on are too many for a path


def test_of_bolt_s_output_names_have_their_files(exact) -> None:
    profile, program = exact[PROGRAMS[0]]
    text = "boltedcollection\n1 main 0 1 main 0 0 5\n"
    made, account = carried_fdata(fdata(text), program, program)
    assert made.bolted
    assert account.carried() == 1.0
    assert profile.bolted is False
