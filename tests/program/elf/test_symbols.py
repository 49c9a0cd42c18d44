"""Symbols, judged by llvm-nm and by tables written by hand."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import Compiled, Corpus, Link, Run, Tool
from builders.symbols import Row, symbol_table
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.symbols import STB_LOCAL, Symbols, read_symbols, thread_local_names
from lbr2pgo.support.errors import InputError


def names_at(symbols: Symbols, *addresses: int) -> list[str | None]:
    rows = symbols.covering(np.array(addresses, np.uint64))
    return [None if row < 0 else symbols.names[row] for row in rows.tolist()]


SOURCE = """
.file "one.c"
.globl _start, twin
.weak soft
.type _start,@function
.type local,@function
.type twin,@function
.type soft,@function
.type thing,@object
_start: twin: soft: nop
 ret
.size _start, .-_start
local: ret
.size local, .-local
.globl bare
bare: ret
.globl constant
constant = 0x1234
.section .tdata,"awT",@progbits
.globl per_thread
per_thread: .quad 1
.data
thing: .quad 1
.size thing, 8
"""


@pytest.fixture(scope="module")
def symbols(link: Link) -> Symbols:
    return read_symbols(Image.open(link(SOURCE)))


def test_what_is_kept(symbols: Symbols) -> None:
    kept = set(symbols.names)
    assert {"_start", "twin", "soft", "local", "bare", "constant", "thing"} <= kept
    assert not {"per_thread", "one.c"} & kept
    assert symbols.origin == ".symtab"
    assert symbols.health == {}


def test_thread_local_names_are_left_out_of_the_others(link: Link) -> None:
    assert thread_local_names(Image.open(link(SOURCE))) == ("per_thread",)


def test_thread_local_names_of_a_shared_library_are_left_when_it_is_stripped(link: Link) -> None:
    source = f"{SOURCE}\n.text\nmovq elsewhere@GOTTPOFF(%rip), %rax\n"
    shared = link(source, "-shared", "--strip-all")
    assert thread_local_names(Image.open(shared)) == ("elsewhere", "per_thread")
    assert thread_local_names(Image.open(link("_start: ret\n", "--strip-all"))) == ()


def test_order_and_lookup(symbols: Symbols) -> None:
    assert (symbols.start[1:] >= symbols.start[:-1]).all()
    row = symbols.by_name("local")
    assert row is not None
    assert (symbols.size[row], symbols.binding[row]) == (1, STB_LOCAL)
    assert symbols.file[row] == "one.c"
    assert symbols.by_name("nope") is symbols.by_name("") is None
    start = symbols.by_name("_start")
    assert start is not None
    assert symbols.file[start] == ""
    constant = symbols.by_name("constant")
    assert constant is not None
    assert (symbols.section[constant], symbols.start[constant]) == (-1, 0x1234)


def test_covering_prefers_sized_functions(symbols: Symbols) -> None:
    start = int(symbols.start[symbols.by_name("_start")])
    assert names_at(symbols, start - 1, start, start + 1, start + 2, start + 3) == [
        None, "_start", "_start", "local", None,
    ]  # fmt: skip


def test_covering_nested_and_overlapping() -> None:
    symbols = symbol_table(
        Row("outer", 10, 90), Row("inner", 20, 5, local=True), Row("empty", 30),
        Row("next", 95, 20), Row("alias", 10, 90, local=True),
    )  # fmt: skip
    assert names_at(symbols, 9, 10, 22, 25, 30, 94, 95, 99, 114, 115) == [
        None, "outer", "inner", "outer", "outer", "outer", "next", "next", "next", None,
    ]  # fmt: skip


def test_sizes_that_overflow() -> None:
    symbols = symbol_table(Row("last", 2**64 - 16, 2**64 - 1), Row("all", 5, 2**64 - 1))
    assert symbols.end.tolist() == [2**64 - 1, 2**64 - 1]
    assert names_at(symbols, 4, 5, 2**63, 2**64 - 16) == [None, "all", "all", "last"]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=8), st.integers(0, 45))
def test_covering_finds_a_function_wherever_there_is_one(
    spans: list[tuple[int, int]], address: int
) -> None:
    symbols = symbol_table(*(Row(f"f{i}", a, n) for i, (a, n) in enumerate(spans)))
    (found,) = symbols.covering(np.array([address], np.uint64)).tolist()
    holding = {f"f{i}" for i, (a, n) in enumerate(spans) if a <= address < a + n}
    assert (symbols.names[found] in holding) if found >= 0 else not holding


def test_by_name_prefers_global_then_weak_then_the_first() -> None:
    symbols = symbol_table(
        Row("f", 1, local=True), Row("f", 2, weak=True), Row("f", 3), Row("g", 4, local=True),
        Row("g", 5, local=True),
    )  # fmt: skip
    assert symbols.start[[symbols.by_name("f"), symbols.by_name("g")]].tolist() == [3, 4]


@pytest.mark.parametrize("name", ["sqlite/sq.zst", "bolt/openssl.zst", "autofdo/test.binary"])
def test_agrees_with_nm(name: str, corpus: Corpus, tool: Tool, run: Run) -> None:
    binary = corpus(name)
    listed = run(tool("llvm-nm-22"), "--defined-only", "--print-size", "--format=posix", binary)
    expected = set()
    for line in listed.stdout.splitlines():
        symbol, kind, value, *size = line.rsplit(" ", 3)
        if kind in "tTwWiV" and size:
            expected.add((symbol, int(value, 16), int(size[0] or "0", 16)))
    symbols = read_symbols(Image.open(binary))
    rows = zip(symbols.names, symbols.start.tolist(), symbols.size.tolist(), strict=True)
    assert len(expected) > 60
    assert expected <= set(rows)


def test_local_symbols_know_their_file(compiled: Compiled, tmp_path: Path) -> None:
    (tmp_path / "two.c").write_text("static int __attribute__((noinline)) f(int x){return x*3;}"
                                    "int g(int x){return f(x);}")  # fmt: skip
    source = ("int g(int); static int __attribute__((noinline)) f(int x){return x+7;}"
              "int main(int c,char**v){return f(c)+g(c);}")  # fmt: skip
    binary = compiled("gcc", source, "-O1", "-fno-ipa-cp", str(tmp_path / "two.c"))
    symbols = read_symbols(Image.open(binary))
    files = [symbols.file[i] for i, name in enumerate(symbols.names) if name.split(".")[0] == "f"]
    assert sorted(files) == ["program.c", "two.c"]


def test_without_symbol_table_the_dynamic_one_serves(
    compiled: Compiled, tmp_path: Path, tool: Tool, run: Run
) -> None:
    source = "int seen(int x){return x;} static int hidden; int main(void){return hidden;}"
    binary = compiled("gcc", source, "-rdynamic")
    stripped = tmp_path / "stripped"
    run(tool("llvm-objcopy-22"), "--strip-all", binary, stripped)
    symbols = read_symbols(Image.open(stripped))
    assert symbols.origin == ".dynsym"
    assert symbols.by_name("seen") is not None
    assert symbols.by_name("hidden") is None


def mini_debug_info(binary: Path, target: Path, content: bytes, tool: Tool, run: Run) -> Image:
    packed = target.with_suffix(".xz")
    packed.write_bytes(content)
    run(tool("llvm-objcopy-22"), "--strip-all", binary, target)
    run(tool("llvm-objcopy-22"), f"--add-section=.gnu_debugdata={packed}", target)
    return Image.open(target)


def test_mini_debug_info(
    compiled: Compiled, tmp_path: Path, tool: Tool, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "static int __attribute__((noinline)) f(void){return 1;} int main(void){return f();}"
    binary = compiled("gcc", source, "-O1", "-rdynamic")
    run(tool("llvm-objcopy-22"), "--only-keep-debug", binary, tmp_path / "debug")
    plain = (tmp_path / "debug").read_bytes()
    image = mini_debug_info(binary, tmp_path / "mini", lzma.compress(plain), tool, run)
    symbols = read_symbols(image)
    assert symbols.origin == ".dynsym and .gnu_debugdata"
    whole = read_symbols(Image.open(binary))
    for name in ("f", "main"):
        row, expected = symbols.by_name(name), whole.by_name(name)
        assert row is not None
        assert symbols.start[row] == whole.start[expected]
    monkeypatch.setattr("lbr2pgo.program.elf.symbols._MINI_DEBUG_INFO_LIMIT", len(plain) // 2)
    assert read_symbols(image).origin == ".dynsym"


@pytest.mark.parametrize("packed", [b"nonsense", lzma.compress(b"\x7fELF"), b"\0"])
def test_broken_mini_debug_info(
    packed: bytes, compiled: Compiled, tmp_path: Path, tool: Tool, run: Run
) -> None:
    binary = compiled("gcc", "int main(void){return 0;}", "-rdynamic")
    image = mini_debug_info(binary, tmp_path / "mini", packed, tool, run)
    symbols = read_symbols(image)
    assert symbols.origin == ".dynsym"
    assert symbols.health == {"symbol tables (.gnu_debugdata) that don't unpack": 1}


def patched(binary: Path, target: Path, section: str, patches: dict[int, bytes]) -> Image:
    image = Image.open(binary)
    data = bytearray(binary.read_bytes())
    base = image.section(section).file_offset  # type: ignore[union-attr]
    for offset, patch in patches.items():
        data[base + offset : base + offset + len(patch)] = patch
    target.write_bytes(data)
    return Image.open(target)


def test_names_outside_the_string_table_are_counted(link: Link, tmp_path: Path) -> None:
    image = patched(link(SOURCE), tmp_path / "broken", ".symtab", {24: b"\xff\xff\xff\x7f"})
    symbols = read_symbols(image)
    assert symbols.health == {"symbol names outside the string table": 1}


def test_names_that_overlap_to_exhaust_memory(link: Link, tmp_path: Path) -> None:
    count = 3000
    lines = [f".globl {'x' * 1000}{i:05}\n{'x' * 1000}{i:05}:" for i in range(count)]
    image = Image.open(link("\n".join(lines) + "\n_start: ret\n"))
    strings = image.section(".strtab")
    assert strings is not None
    data = bytearray(Path(image.path).read_bytes())
    data[strings.file_offset : strings.file_offset + strings.size] = b"y" * strings.size
    symtab = image.section(".symtab")
    assert symtab is not None
    for i in range(count):
        at = symtab.file_offset + 24 * (i + 1)
        data[at : at + 4] = i.to_bytes(4, "little")
    (tmp_path / "bomb").write_bytes(data)
    with pytest.raises(InputError, match="names overlap"):
        read_symbols(Image.open(tmp_path / "bomb"))


def test_an_image_without_any_symbol(link: Link) -> None:
    symbols = read_symbols(Image.open(link("_start: ret\n", "--strip-all")))
    assert len(symbols) == 0
    assert symbols.covering(np.array([1], np.uint64)).tolist() == [-1]
    assert symbols.by_name("_start") is None
