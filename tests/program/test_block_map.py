"""Block maps of programs, against llvm-readobj for every block."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.fixtures import TESTBINS, Compiled, Run, Tool

from lbr2pgo.program.block_map import BlockMap, open_block_map
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.errors import InputError

SOURCE = """
extern "C" int puts(const char *);
static int weird(int n) { switch (n & 7) { case 0: return 3; case 1: return n; case 2: throw n;
  case 3: return n * n; case 4: puts("4"); return 4; default: return -n; } }
int main(int argc, char **) {
  int sum = 0;
  for (int i = 0; i < 100 * argc; i++) try { sum += weird(i); } catch (int n) { sum ^= n; }
  return sum & 1;
}
"""
PLAIN_SOURCE = """
static int odd(int n) { return n % 3 ? n % 5 ? n / 7 : n * 5 : n % 11 ? n / 13 : n ^ 9; }
int main(int argc, char **) {
  int sum = 0;
  for (int i = 0; i < 100 * argc; i++) sum += odd(i);
  return sum & 1;
}
"""
MAP = ("-O2", "-fuse-ld=lld", "-fbasic-block-address-map")
AARCH64 = ("--target=aarch64-linux-gnu", "-fno-exceptions", "-nostdlib", "-static", "-Wl,-e,main")
RANGES, CALL_SITE_ENDS, HASHES, ANALYSIS = 8, 32, 64, 7
"""Features (LLVM: BBAddrMap::Features)."""
BUILDS = {
    "plain": ((*MAP,), CALL_SITE_ENDS),
    "static": ((*MAP, "-static"), CALL_SITE_ENDS),
    "fixed": ((*MAP, "-fno-pie", "-no-pie"), CALL_SITE_ENDS),
    "gnu-linked": ((*MAP, "-fuse-ld=bfd"), CALL_SITE_ENDS),
    "sections": ((*MAP, "-fbasic-block-sections=all"), RANGES | CALL_SITE_ENDS),
    "hashes": ((*MAP, "-mllvm", "-emit-bb-hash"), CALL_SITE_ENDS | HASHES),
    "analysis": ((*MAP, "-mllvm", "-pgo-analysis-map=all"), CALL_SITE_ENDS | ANALYSIS),
    "lto": ((*MAP, "-flto", "-Wl,--lto-basic-block-address-map"), CALL_SITE_ENDS),
    "thin-lto": ((*MAP, "-flto=thin", "-Wl,--lto-basic-block-address-map"), CALL_SITE_ENDS),
    "packed": ((*MAP, "-Wl,--compress-sections=.llvm_bb_addr_map=zstd"), CALL_SITE_ENDS),
}
SAMPLES = """main:100000:1
 3: 1000 _ZL5weirdi:5000
_ZL5weirdi:50000:5000
 1: 4000
"""
"""Of hot functions with blocks that never ran."""


def read_by_llvm(path: Path, tool: Tool, run: Run) -> list[tuple[int, int, int, int]]:
    """Address, id, size and metadata of each block."""
    said = run(tool("llvm-readobj-22"), "--bb-addr-map", path).stdout
    found, base, block = [], 0, [0, 0, 0, 0]
    bits = {"HasReturn": 1, "HasTailCall": 2, "IsEHPad": 4, "CanFallThrough": 8,
            "HasIndirectBranch": 16}  # fmt: skip
    for key, value in re.findall(r"^ *([\w ]+): (\S+)$", said, re.MULTILINE):
        if key == "Base Address":
            base = int(value, 16)
        elif key == "ID":
            block = [0, int(value), 0, 0]
        elif key == "Offset":
            block[0] = base + int(value, 16)
        elif key == "Size":
            block[2] = int(value, 16)
        elif key in bits:
            block[3] |= bits[key] * (value == "Yes")
            if key == "HasIndirectBranch":
                found.append((block[0], block[1], block[2], block[3]))
    return sorted(found)


def read_by_us(path: Path) -> list[tuple[int, int, int, int]]:
    found = open_block_map(Image.open(path))
    columns = (found.start, found.identity, found.size, found.metadata)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("build", BUILDS)
def test_every_block_is_that_of_llvm_readobj(
    build: str, compiled: Compiled, tool: Tool, run: Run
) -> None:
    flags, features = BUILDS[build]
    program = compiled("clang++-22", SOURCE, *flags)
    assert features_of(program) == features
    assert_equal_to_llvm(program, tool, run)
    assert open_block_map(Image.open(program)).hash.any() == bool(features & HASHES)


def features_of(program: Path) -> int:
    """Of all functions together."""
    section = Image.open(program).section(".llvm_bb_addr_map")
    assert section is not None
    data = Image.open(program).unpacked(section)
    assert data is not None
    return int.from_bytes(data[1:3], "little")


def assert_equal_to_llvm(program: Path, tool: Tool, run: Run) -> None:
    found = read_by_us(program)
    assert len(found) > 8
    assert found == read_by_llvm(program, tool, run)
    blocks = open_block_map(Image.open(program))
    assert blocks.is_entry.sum() == len(blocks.entry)


def test_functions_that_clang_split_have_a_range_for_each_part(
    compiled: Compiled, tool: Tool, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "samples").write_text(SAMPLES)
    use = f"-fprofile-sample-use={tmp_path / 'samples'}"
    program = compiled("clang++-22", SOURCE, *MAP, "-g1", "-fsplit-machine-functions", use)
    assert features_of(program) & RANGES
    assert "weirdi.cold" in run(tool("llvm-nm-22"), program).stdout
    assert_equal_to_llvm(program, tool, run)


def test_maps_of_aarch64_programs_are_read(compiled: Compiled, tool: Tool, run: Run) -> None:
    program = compiled("clang++-22", PLAIN_SOURCE, *AARCH64, *MAP)
    assert_equal_to_llvm(program, tool, run)


def test_maps_of_objects_stand_behind_one_another(
    compiled: Compiled, tool: Tool, run: Run, tmp_path: Path
) -> None:
    """One section of all, or one for each of them in what `ld -r` makes."""
    objects = []
    for name in ("one", "two", "three"):
        source = tmp_path / f"{name}.cc"
        source.write_text(SOURCE if name == "one" else PLAIN_SOURCE.replace("main", name))
        objects.append(source.with_suffix(".o"))
        run(tool("clang++-22"), *MAP, "-ffunction-sections", "-c", source, "-o", objects[-1])
    together = tmp_path / "together.o"
    run(tool("ld.lld-22"), "-r", *objects, "-o", together)
    for given in (objects, [together]):
        program = tmp_path / "program"
        run(tool("clang++-22"), "-fuse-ld=lld", *given, "-o", program)
        assert len(open_block_map(Image.open(program)).entry) >= 3
        assert_equal_to_llvm(program, tool, run)


def written(version: int, feature: int) -> str:
    calls = ", CallsiteEndOffsets: [1, 2]" if feature & 32 else ""
    digest = ", Hash: 77" if feature & 64 else ""
    more = calls + digest
    return f"""--- !ELF
FileHeader: {{Class: ELFCLASS64, Data: ELFDATA2LSB, Type: ET_EXEC, Machine: EM_X86_64}}
ProgramHeaders:
  - {{Type: PT_LOAD, Flags: [PF_X, PF_R], VAddr: 0x1000, FirstSec: .text, LastSec: .text}}
Sections:
  - Name: .text
    Type: SHT_PROGBITS
    Flags: [SHF_ALLOC, SHF_EXECINSTR]
    Address: 0x1000
    Size: 64
  - Name: .llvm_bb_addr_map
    Type: SHT_LLVM_BB_ADDR_MAP
    Link: .text
    Entries:
      - Version: {version}
        Feature: {feature}
        BBRanges:
          - BaseAddress: 0x1000
            BBEntries:
              - {{ID: 0, AddressOffset: 0, Size: 5, Metadata: 8{more}}}
              - {{ID: 3, AddressOffset: 2, Size: 0, Metadata: 0{more}}}
              - {{ID: 1, AddressOffset: 0, Size: 7, Metadata: 17{more}}}
"""


@pytest.fixture
def made(tmp_path: Path, tool: Tool, run: Run) -> Callable[[int, int], Path]:
    def make(version: int, feature: int) -> Path:
        source, path = tmp_path / "map.yaml", tmp_path / "map.elf"
        source.write_text(written(version, feature))
        run(tool("yaml2obj-22"), source, "-o", path)
        return path

    return make


@pytest.mark.parametrize(
    ("version", "feature"),
    [(2, 0), (2, RANGES), (3, CALL_SITE_ENDS), (3, RANGES), (4, HASHES), (4, 0),
     (5, RANGES | CALL_SITE_ENDS | HASHES), (5, 0)],
)  # fmt: skip
def test_older_versions_are_read_as_llvm_reads_them(
    version: int, feature: int, made: Callable[[int, int], Path], tool: Tool, run: Run
) -> None:
    """The second of their blocks has no instructions."""
    program = made(version, feature)
    found = read_by_us(program)
    assert found == read_by_llvm(program, tool, run)
    assert [size for _, _, size, _ in found].count(0) == (feature & CALL_SITE_ENDS == 0)


def test_version_1_is_version_2_without_numbers(made: Callable[[int, int], Path]) -> None:
    """LLVM 22 writes it, and reads none before version 2."""
    older, newer = (read_by_us(made(version, 0)) for version in (1, 2))
    assert sorted(row for _, row, *_ in older) == [0, 1, 2]
    without = [sorted((start, *rest) for start, _, *rest in each) for each in (older, newer)]
    assert without[0] == without[1]


def test_version_0_is_read_as_llvm_14_reads_it(tool: Tool, run: Run, tmp_path: Path) -> None:
    """Its section has a type of its own, and its offsets are from the function's start."""
    source, program = tmp_path / "code.ll", tmp_path / "program"
    source.write_text(IN_LLVM_14)
    words = ("-relocation-model=pic", "--basic-block-sections=labels", "-filetype=obj")
    run(tool("llc-14"), *words, source, "-o", program.with_suffix(".o"))
    run(tool("clang-22"), "-fuse-ld=lld", program.with_suffix(".o"), "-o", program)
    said = run(tool("llvm-readobj-14"), "--bb-addr-map", program).stdout
    wanted = []
    for each in said.split("At: ")[1:]:
        offsets, sizes = (re.findall(rf"{key}: (0x\w+)", each) for key in ("Offset", "Size"))
        rows = enumerate(zip(offsets, sizes, strict=True))
        at = int(each.split()[0], 16)
        wanted += [(at + int(offset, 16), row, int(size, 16)) for row, (offset, size) in rows]
    assert len(wanted) == 6
    assert [block[:3] for block in read_by_us(program)] == sorted(wanted)


IN_LLVM_14 = """
target triple = "x86_64-unknown-linux-gnu"
define i32 @odd(i32 %n) noinline {
  %is = icmp sgt i32 %n, 3
  br i1 %is, label %more, label %less
more:
  %square = mul i32 %n, %n
  ret i32 %square
less:
  ret i32 7
}
define i32 @main(i32 %n) {
  %odd = call i32 @odd(i32 %n)
  %is = icmp eq i32 %odd, 3
  br i1 %is, label %yes, label %no
yes:
  %third = sdiv i32 %n, 3
  ret i32 %third
no:
  ret i32 0
}
"""


def damaged(path: Path, change: Callable[[bytearray, int], None]) -> Path:
    image = Image.open(path)
    section = image.section(".llvm_bb_addr_map")
    assert section is not None
    data = bytearray(path.read_bytes())
    change(data, section.file_offset)
    path.write_bytes(data)
    return path


def test_an_unknown_version_is_named(made: Callable[[int, int], Path]) -> None:
    program = damaged(made(5, 0), lambda data, at: data.__setitem__(at, 9))
    with pytest.raises(InputError, match=r"@0x\w+: block map of version 9; those up to 5 are"):
        open_block_map(Image.open(program))


def test_a_cut_map_is_told_with_its_place(made: Callable[[int, int], Path]) -> None:
    program = damaged(made(5, 0), lambda data, at: data.__setitem__(at + 11, 100))
    with pytest.raises(InputError, match=r"llvm_bb_addr_map@0x\w+: the block map is cut off"):
        open_block_map(Image.open(program))


def test_a_program_without_a_map_is_told_how_to_get_one(compiled: Compiled) -> None:
    program = compiled("clang-22", "int main() { return 0; }")
    with pytest.raises(InputError, match="has no block map\nBuild it with clang -fbasic-block-ad"):
        open_block_map(Image.open(program))


def test_a_program_that_can_have_no_map_is_not_told_to_be_built_with_one() -> None:
    with pytest.raises(InputError, match="no block map\nClang writes none for riscv64: lay func"):
        open_block_map(Image.open(TESTBINS / "riscv64" / "interp.pie"))


def test_the_map_is_found_in_the_file_that_was_split_off(
    compiled: Compiled, tool: Tool, run: Run
) -> None:
    program = compiled("clang++-22", SOURCE, *MAP, "-g1", "-Wl,--build-id")
    wanted, debug = read_by_us(program), program.with_suffix(".debug")
    objcopy = tool("llvm-objcopy-22")
    run(objcopy, "--only-keep-debug", program, debug)
    run(objcopy, "--strip-all", f"--add-gnu-debuglink={debug}", program)
    run(objcopy, "--remove-section=.llvm_bb_addr_map", program)
    found: BlockMap = open_block_map(Image.open(program))
    assert Path(found.origin).name == debug.name
    assert sorted(found.start.tolist()) == [start for start, *_ in wanted]
