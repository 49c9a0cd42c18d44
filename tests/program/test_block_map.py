"""Block maps of programs, against llvm-readobj for every block."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lbr2pgo.program.block_map import BlockMap, open_block_map
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.errors import InputError

Run = Callable[..., subprocess.CompletedProcess[str]]
Tool = Callable[[str], str]

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
MAP = ("-O2", "-fuse-ld=lld", "-fbasic-block-address-map")
BUILDS = {
    "plain": MAP,
    "sections": (*MAP, "-fbasic-block-sections=all"),
    "hashes": (*MAP, "-mllvm", "-emit-bb-hash"),
    "analysis": (*MAP, "-mllvm", "-pgo-analysis-map=all"),
    "lto": (*MAP, "-flto=thin", "-Wl,--lto-basic-block-address-map"),
    "packed": (*MAP, "-Wl,--compress-sections=.llvm_bb_addr_map=zstd"),
}


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
    build: str, compiled: Callable[..., Path], tool: Tool, run: Run
) -> None:
    program = compiled("clang++-22", SOURCE, *BUILDS[build])
    found = read_by_us(program)
    assert len(found) > 12
    assert found == read_by_llvm(program, tool, run)
    blocks = open_block_map(Image.open(program))
    assert blocks.is_entry.sum() == len(blocks.entry)
    assert blocks.hash.any() == (build == "hashes")


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


@pytest.mark.parametrize("version", [2, 3, 4, 5])
@pytest.mark.parametrize("feature", [0, 8, 32, 64])
def test_older_versions_are_read_as_llvm_reads_them(
    version: int, feature: int, made: Callable[[int, int], Path], tool: Tool, run: Run
) -> None:
    if (feature == 32 and version < 3) or (feature == 64 and version < 4):
        pytest.skip("the version has no such feature")
    program = made(version, feature)
    assert read_by_us(program) == read_by_llvm(program, tool, run)


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


def test_a_program_without_a_map_is_told_how_to_get_one(compiled: Callable[..., Path]) -> None:
    program = compiled("clang-22", "int main() { return 0; }")
    with pytest.raises(InputError, match="has no block map\nBuild it with clang -fbasic-block-ad"):
        open_block_map(Image.open(program))


def test_the_map_is_found_in_the_file_that_was_split_off(
    compiled: Callable[..., Path], tool: Tool, run: Run
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
