"""PE programs with DWARF, by clang for MinGW, freestanding."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from builders.outputs import outputs

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.program import Program
from lbr2pgo.support.errors import InputError

SOURCE = r"""
volatile int sink;
__attribute__((noinline)) static int leaf(int x) { return x * sink + 3; }
__attribute__((noinline)) int count(int n) {
  int total = 0;
  for (int i = 0; i < n; i++) {
    total += leaf(i);
    if (total & 1) sink++;
  }
  return total;
}
int mainCRTStartup(void) { return count(1000); }
void __main(void) {}
"""


@pytest.fixture(scope="module")
def program(tool, run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pe")
    (folder / "p.c").write_text(SOURCE)
    run(tool("clang-22"), "-target", "x86_64-w64-windows-gnu", "-O2", "-g", "-ffreestanding",
        "-fdebug-info-for-profiling", "-nostdlib", f"--ld-path={tool('ld.lld-22')}",
        "-Wl,-e,mainCRTStartup", folder / "p.c", "-o", folder / "p.exe")  # fmt: skip
    return folder / "p.exe"


def test_sections_functions_and_addresses_are_those_of_objdump(program: Path, tool, run) -> None:
    opened = Program.open(program)
    told = run(tool("llvm-objdump-22"), "-d", "--no-show-raw-insn", program).stdout
    starts = {
        line.split("<")[1].split(">")[0]: int(line.split()[0], 16)
        for line in told.splitlines()
        if line.endswith(">:")
    }
    assert {name: opened.address_of(name) for name in starts} == starts
    assert len(opened.functions) == len(starts) == 4
    assert opened.image.machine == "x86-64"
    assert opened.health() == {}


def test_its_profile_is_that_of_llvm_profgen(program: Path, tool, run, tmp_path: Path) -> None:
    opened = Program.open(program)
    count, leaf = opened.address_of("count"), opened.address_of("leaf")
    assert count is not None
    assert leaf is not None
    table = opened.branches
    pairs = list(zip(table.address.tolist(), table.target.tolist(), strict=True))
    call = next(pair for pair in pairs if pair[1] == leaf)
    back = next((source, to) for source, to in pairs if count <= to < source < leaf)
    ret = next(pair for pair in pairs if pair[0] > leaf)
    entry = "0x{:x}/0x{:x}/P/-/-/0".format
    stack = [entry(*back), entry(ret[0], call[0] + 5), entry(*call)] * 4
    text = tmp_path / "perf.txt"
    text.write_text("".join(f" {call[0]:x} {' '.join(stack)}\n" for _ in range(3)))
    ours, theirs = tmp_path / "ours.prof", tmp_path / "theirs.prof"
    run(tool("llvm-profgen-22"), f"--binary={program}", f"--perfscript={text}", "--format=text",
        "--use-dwarf-correlation", "-o", theirs)  # fmt: skip
    done = convert(ConvertOptions((text,), program, outputs=outputs(llvm=ours)))
    assert ours.read_bytes() == theirs.read_bytes()
    assert b"leaf:" in ours.read_bytes()
    assert done.tallies["runs_located"] == done.tallies["runs_in_image"] > 0


def test_without_dwarf_it_is_refused(program: Path, tool, run, tmp_path: Path) -> None:
    stripped = tmp_path / "stripped.exe"
    run(tool("llvm-objcopy-22"), "--strip-debug", program, stripped)
    with pytest.raises(InputError, match="without DWARF") as raised:
        Image.open(stripped)
    assert "-gdwarf" in (raised.value.cure or "")


def test_a_pdb_is_named(tool, tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text(SOURCE.replace("int sink", "int sink, _fltused"))
    command = (
        tool("clang-22"), "-target", "x86_64-windows-msvc", "-g", "-gcodeview", "-ffreestanding",
        "-nostdlib", "-fuse-ld=lld", f"--ld-path={tool('lld-link-22')}",
        "-Wl,/entry:mainCRTStartup,/subsystem:console,/debug", "p.c", "-o", "p.exe",
    )  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with pytest.raises(InputError, match=r"its debug information is in .*p\.pdb"):
        Image.open(tmp_path / "p.exe")


@pytest.mark.parametrize(
    ("place", "number", "message"),
    [(4, b"\x34\x12", r"another machine \(0x1234\)"), (48, b"\xff" * 8, "damaged PE program")],
    ids=["machine", "image base"],
)
def test_numbers_that_nothing_has_are_damage(
    program: Path, tmp_path: Path, place: int, number: bytes, message: str
) -> None:
    data = bytearray(program.read_bytes())
    place += int.from_bytes(data[0x3C:0x40], "little")
    data[place : place + len(number)] = number
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(InputError, match=message):
        Image.open(tmp_path / "x")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"MZ" + bytes(600), "begins like a PE program"),
        (b"MZ".ljust(0x202, b"\0") + b"HdrS" + bytes(99), "a packed kernel"),
    ],
)
def test_what_only_begins_so_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError, match=message):
        Image.open(tmp_path / "x")
