import io
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.bolt.fdata import fdata_text
from lbr2pgo.profiles.bolt.fdata.fdata_text import Fdata, FdataBranches, FdataLoads, FdataSamples
from lbr2pgo.support.errors import InputError, OutputError

PROGRAM = r"""
.text
.globl main
.type main,@function
main:
 push %rbx
 mov $1000000,%ebx
1: call "odd name\\x"
 dec %ebx
 jne 1b
 pop %rbx
 xor %eax,%eax
 ret
.size main,.-main
.globl "odd name\\x"
.type "odd name\\x",@function
"odd name\\x":
 test $1,%ebx
 jne 2f
 nop
2: ret
.size "odd name\\x",.-"odd name\\x"
"""

BRANCHES = (
    b"1 main 6 1 odd\\ name\\\\x 0 0 100\n"
    b"1 main d 1 main 6 0 99\n"
    b"1 odd\\ name\\\\x 6 1 odd\\ name\\\\x 9 0 60\n"
)
LOADS = b"4 main 3fb 4 table 10 9\n4 main 3fb 3 [heap] 0 2\n"


def parse(text):
    return fdata_text.parse(io.BytesIO(text), "x.fdata")


def written(file):
    stream = io.BytesIO()
    fdata_text.write(file, stream)
    return stream.getvalue()


TYPES = [np.uint8, np.int32, np.uint64, np.uint8, np.int32, np.uint64, np.uint64, np.uint64]
NO_SAMPLES = FdataSamples(*(np.zeros(0, kind) for kind in (*TYPES[:3], np.uint64)))


def branches(*rows):
    return FdataBranches(*map(np.array, zip(*rows, strict=True), TYPES))


def test_a_line_is_a_row():
    file = parse(b"1 main 3fb 0 /lib/ld.so 12 4 221\n2 t.c/f 0 1 main FF 0 18\n")
    assert file.names == ("main", "t.c/f", "/lib/ld.so")
    rows = [column.tolist() for column in file.branches.columns()]
    assert rows == [[1, 2], [0, 1], [0x3FB, 0], [0, 1], [2, 0], [0x12, 0xFF], [4, 0], [221, 18]]
    assert [str(column.dtype) for column in file.branches.columns()] == [
        "uint8", "int32", "uint64", "uint8", "int32", "uint64", "uint64", "uint64",
    ]  # fmt: skip


def test_blanks_and_backslashes_in_names_are_escaped():
    file = parse(BRANCHES)
    assert file.names == ("main", "odd name\\x")
    assert written(file) == BRANCHES


def test_fdata_is_recognised():
    for content in (
        BRANCHES,
        LOADS,
        b"boltedcollection\n",
        b"no_lbr\n",
        b"no_lbr cycles\n1 f 0 1\n",
    ):
        assert fdata_text.is_fdata(content)
    for content in (
        b"",
        b"main:1:1\n 1: 1\n",
        b"no_lbrx\n",
        b"1 2 3\n",
        b"T 1 2 3 4\n",
        b"\x7fELF",
    ):
        assert not fdata_text.is_fdata(content)


def test_several_blanks_part_fields_as_well():
    assert written(parse(b"1  main   3fb 1 f  0 4 221  \n")) == b"1 main 3fb 1 f 0 4 221\n"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        BRANCHES,
        b"boltedcollection\n" + BRANCHES,
        BRANCHES + LOADS,
        LOADS,
        b"no_lbr\n1 main b 5\n",
        b"no_lbr cycles:u cpu/mem-loads,ldlat=30/P\n1 main b 5\n0 [unknown] 0 1\n" + LOADS,
        b"boltedcollection\nno_lbr\n",
        "1 naïve\u2028 0 1 \t\r 0 0 1\n".encode() + b"1 \xff\xfe 0 1 f 0 0 1\n",
        b"1 f ffffffffffffffff 1 f 0 9223372036854775807 9223372036854775807\n",
    ],
)
def test_round_trip(text):
    assert written(parse(text)) == text


@pytest.mark.parametrize("size", [1, 7, 50, 51, 52, 4096])
def test_blocks_may_end_anywhere(monkeypatch, size):
    monkeypatch.setattr(fdata_text, "_READ_SIZE", size)
    text = b"boltedcollection\n" + BRANCHES * 3 + LOADS * 3
    assert written(parse(text)) == text


def test_a_header_may_be_cut_by_a_block(monkeypatch):
    monkeypatch.setattr(fdata_text, "_READ_SIZE", 20)
    text = b"boltedcollection\nno_lbr cycles\n1 main b 5\n"
    assert written(parse(text)) == text


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        (b"1 main 0 1 f 0 0 1\n1 main 0 1 f 0 0\n", 2, "MISPREDICTIONS COUNT"),
        (b"1 main 0 1 f 0 0 1 7\n", 1, "expected"),
        (b"3 main 0 1 f 0 0 1\n", 1, "3|4|5"),
        (b"1 main 0 1 f 0 0 1\n6 main 0 6 f 0 1\n", 2, "0|1|2"),
        (b"1 main 0x10 1 f 0 0 1\n", 1, "expected"),
        (b"1 main 10 1 f 0 0 -1\n", 1, "expected"),
        (b"1 main 10 1 f 0 0 1_0\n", 1, "expected"),
        (b"1 main 10 1 f 0 0 9223372036854775808\n", 1, "expected"),
        (b"1 main 10 1 f 0 0 1\n1 main 10 1 f 0 0 9999999999999999999\n", 2, "expected"),
        (b"1 main 10000000000000000 1 f 0 0 1\n", 1, "expected"),
        (b"1 main 0 1 f 0 0 1\n\n", 2, "expected"),
        (b"1 main 0 1 f 0 0 1\n1 main b 5\n", 2, "expected"),
        (b"no_lbr\n1 main 0 1 f 0 0 1\n", 2, "NAME OFFSET COUNT"),
        (LOADS + BRANCHES, 3, "3|4|5"),
        (b"no_lbr  a\n", 1, "expected"),
        (b"boltedcollection x\n", 1, "expected"),
        (b"no_lbr\nboltedcollection\n", 2, "expected"),
        (b"1 main 0 1 f 0 0 1\n1 main 0 1 f 0 0 12", 2, "cut off"),
        (b"\x7fELF\0\0\n", 1, "expected"),
        (b"1 \\\n 0 1 f 0 0 1\n", 1, "expected"),
    ],
)
def test_an_error_names_the_line(text, line, part):
    with pytest.raises(InputError) as caught:
        parse(text)
    assert caught.value.where == f"x.fdata:{line}"
    assert part in str(caught.value)


def test_the_line_is_right_in_later_blocks(monkeypatch):
    monkeypatch.setattr(fdata_text, "_READ_SIZE", 100)
    with pytest.raises(InputError) as caught:
        parse(BRANCHES * 100 + b"nonsense\n" + BRANCHES)
    assert caught.value.where == "x.fdata:301"


def test_a_line_without_end_is_refused_in_bounded_memory():
    class Endless(io.RawIOBase):
        def read(self, size=-1):
            return b"x" * size

    with pytest.raises(InputError, match="no end"):
        fdata_text.parse(Endless(), "x.fdata")


def test_no_regular_expression_backtracks_without_bound():
    start = time.process_time()
    for text in (b"1 " + b"\\ " * 500_000, b"1 a" + b" " * 500_000, b"1 " + b"a " * 400_000):
        with pytest.raises(InputError):
            parse(text + b"\n")
    assert time.process_time() - start < 5


def test_an_empty_name_is_written_as_unknown():
    file = Fdata(("", "f"), branches=branches((0, 0, 0, 1, 1, 5, 0, 3)))
    assert written(file) == b"0 [unknown] 0 1 f 5 0 3\n"


@pytest.mark.parametrize(
    "file",
    [
        Fdata(("a\nb",), branches=branches((1, 0, 0, 1, 0, 5, 0, 3))),
        Fdata(("f",), branches=branches((1, 0, 0, 1, 0, 5, 0, 2**63))),
        Fdata((), samples=NO_SAMPLES, events=("a b",)),
    ],
)
def test_what_fdata_can_not_hold_is_refused(tmp_path, file):
    with pytest.raises(OutputError):
        fdata_text.write(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_tables_are_checked():
    one = branches((1, 0, 0, 1, 0, 5, 0, 3))
    with pytest.raises(ValueError, match=r"FdataBranches\.count has shape"):
        replace(one, count=np.zeros(2, np.uint64))
    with pytest.raises(ValueError, match="must hold uint64"):
        replace(one, count=np.zeros(1))
    with pytest.raises(ValueError, match="read-only"):
        one.count[0] = 4
    with pytest.raises(ValueError, match="range"):
        Fdata((), branches=one)
    with pytest.raises(ValueError, match="range"):
        Fdata(("f",), branches=replace(one, to_is_symbol=np.array([3], np.uint8)))
    with pytest.raises(ValueError, match="share"):
        Fdata(("f",), branches=one, samples=NO_SAMPLES)
    with pytest.raises(ValueError, match="event"):
        Fdata(("f",), branches=one, events=("cycles",))


def test_bolt_order_groups_by_function_and_puts_entries_last():
    text = (
        b"1 b 5 1 b 9 0 1\n"
        b"0 [unknown] 0 1 b 3 0 1\n"
        b"1 b 5 0 [unknown] 0 0 1\n"
        b"1 b 5 1 a 0 0 1\n"
        b"1 b 5 1 b 10 0 1\n"
        b"1 b 4 1 z 0 0 1\n"
        b"1 B 4 1 z 0 0 1\n"
        b"0 [unknown] 0 1 b 1 0 1\n"
        b"0 [unknown] 0 1 a 1 0 1\n"
    )
    assert written(fdata_text.in_bolt_order(parse(text))) == (
        b"1 B 4 1 z 0 0 1\n"
        b"0 [unknown] 0 1 a 1 0 1\n"
        b"1 b 4 1 z 0 0 1\n"
        b"1 b 5 0 [unknown] 0 0 1\n"
        b"1 b 5 1 a 0 0 1\n"
        b"1 b 5 1 b 9 0 1\n"
        b"1 b 5 1 b 10 0 1\n"
        b"0 [unknown] 0 1 b 1 0 1\n"
        b"0 [unknown] 0 1 b 3 0 1\n"
    )


def test_bolt_order_of_samples_and_loads():
    samples = b"no_lbr\n1 b 1 5\n1 a 10 5\n1 a 9 5\n4 b 1 4 x 0 1\n4 a 1 4 x 0 1\n"
    assert written(fdata_text.in_bolt_order(parse(samples))) == (
        b"no_lbr\n1 a 9 5\n1 a 10 5\n1 b 1 5\n4 a 1 4 x 0 1\n4 b 1 4 x 0 1\n"
    )


names = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1)
u64 = st.integers(0, 2**64 - 1)
counts = st.integers(0, 2**63 - 1)


@st.composite
def files(draw):
    table = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    place = st.tuples(st.integers(0, 2), st.integers(0, len(table) - 1), u64)
    row = st.builds(lambda a, b, c: (*a, *b, *c), place, place, st.tuples(counts, counts))
    rows = draw(st.lists(row, max_size=8))
    columns = list(zip(*rows, strict=True)) or [()] * 8
    arrays = [np.array(c, t) for c, t in zip(columns, TYPES, strict=True)]
    loads = FdataLoads(*arrays[:6], arrays[7]) if rows and draw(st.booleans()) else None
    bolted = draw(st.booleans())
    if draw(st.booleans()):
        samples = FdataSamples(*arrays[:3], arrays[7])
        return Fdata(tuple(table), samples=samples, loads=loads, bolted=bolted)
    return Fdata(tuple(table), branches=FdataBranches(*arrays), loads=loads, bolted=bolted)


def rows_by_name(file):
    def named(letter, column):
        return [file.names[i] for i in column] if letter == "n" else column.tolist()

    return [
        [named(*pair) for pair in zip(table.form, table.columns(), strict=True)]
        for table in file.tables()
    ]


@given(files())
def test_any_table_survives(file):
    again = parse(written(file))
    assert rows_by_name(again) == rows_by_name(file)
    assert again.bolted == file.bolted


@given(st.binary(max_size=200) | st.text("012345 abcf\\\nno_lbr", max_size=200).map(str.encode))
def test_any_input_is_read_or_refused(data):
    try:
        file = parse(data)
    except InputError:
        return
    assert rows_by_name(parse(written(file))) == rows_by_name(file)


def test_a_million_lines_are_quick():
    text = BRANCHES * 333_333
    start = time.process_time()
    assert written(parse(text)) == text
    assert time.process_time() - start < 20


def test_perf2bolts_file_is_written_back_byte_for_byte(corpus, tmp_path):
    path = corpus("sqlite/sq.perf2bolt-22.fdata.zst")
    file = fdata_text.read(path)
    assert len(file.branches) == 4622
    fdata_text.write(file, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_bolt_order_is_the_order_of_perf2bolts_file(corpus, tmp_path):
    path = corpus("sqlite/sq.perf2bolt-22.fdata.zst")
    file = fdata_text.read(path)
    shuffled = file.branches.take(np.random.default_rng(7).permutation(len(file.branches)))
    fdata_text.write(fdata_text.in_bolt_order(replace(file, branches=shuffled)), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@pytest.fixture(scope="module")
def program(tool, run, tmp_path_factory):
    """A program with an odd name, for llvm-bolt and perf2bolt."""
    directory = tmp_path_factory.mktemp("program")
    (directory / "a.s").write_text(PROGRAM)
    flags = ("-no-pie", "-Wl,--emit-relocs", "-fuse-ld=lld")
    run(tool("clang-22"), directory / "a.s", "-o", directory / "a", *flags)
    return directory / "a"


def addresses(program, run, tool):
    symbols = run(tool("llvm-nm-22"), program).stdout.splitlines()
    return {line[19:]: int(line[:16], 16) for line in symbols if line[:16].strip()}


@pytest.mark.parametrize("kind", ["branches", "samples"])
def test_perf2bolt_writes_odd_names_as_we_do(program, tool, run, tmp_path, kind):
    at = addresses(program, run, tool)
    main, odd = at["main"], at["odd name\\x"]
    events = {
        "branches": f"E cycles\nB {main + 6:x} {odd:x} 100 0\nB {main + 13:x} {main + 6:x} 99 1\n"
        f"B {odd + 6:x} {odd + 9:x} 60 2\n",
        "samples": f"E cycles:u\nS {main + 11:x} 5\nS {odd + 6:x} 7\n",
    }
    (tmp_path / "in").write_text(events[kind])
    mode = ("-ba",) if kind == "samples" else ()
    run(tool("perf2bolt-22"), program, "-pa", *mode, "-p", tmp_path / "in", "-o", tmp_path / "out")
    text = (tmp_path / "out").read_bytes()
    file = parse(text)
    assert "odd name\\x" in file.names
    assert len(file.tables()[0]) >= 2
    assert written(fdata_text.in_bolt_order(file)) == text


def test_llvm_bolt_loads_what_we_write(program, tool, run, tmp_path):
    fdata_text.write(parse(BRANCHES), tmp_path / "x.fdata")
    done = run(tool("llvm-bolt-22"), program, "-data", tmp_path / "x.fdata", "-o", tmp_path / "o")
    report = done.stdout + done.stderr
    assert "2 out of" in report
    assert "have non-empty execution profile" in report
    assert "invalid" not in report


def test_llvm_bolt_loads_a_file_of_samples(program, tool, run, tmp_path):
    text = b"no_lbr cycles\n1 main b 500\n1 odd\\ name\\\\x 6 700\n"
    fdata_text.write(parse(text), tmp_path / "x.fdata")
    done = run(tool("llvm-bolt-22"), program, "-data", tmp_path / "x.fdata", "-o", tmp_path / "o")
    assert "2 out of" in done.stdout + done.stderr


def test_merge_fdata_doubles_what_we_write(tool, run, tmp_path):
    file = parse(BRANCHES)
    for name in ("a", "b"):
        fdata_text.write(file, tmp_path / name)
    run(tool("merge-fdata-22"), tmp_path / "a", tmp_path / "b", "-o", tmp_path / "c")
    merged = fdata_text.in_bolt_order(fdata_text.read(tmp_path / "c"))
    doubled = replace(
        file.branches,
        count=file.branches.count * 2,
        mispredicted=file.branches.mispredicted * 2,
    )
    assert written(merged) == written(fdata_text.in_bolt_order(replace(file, branches=doubled)))
