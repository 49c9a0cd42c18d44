"""Debug information of whole programs, judged by llvm-symbolizer and by pyelftools."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import Corpus, Tool
from builders.frames import as_tuples, code_addresses, frames_of
from builders.programs import SOURCES, compile_program
from builders.symbolizer import Frame, symbolize, telling, without_symbols

from lbr2pgo.program.dwarf.debug_info import DebugInfo, DwarfFunctions, Lines
from lbr2pgo.program.elf.file import FileInMemory
from lbr2pgo.program.elf.image import Image

Build = Callable[..., Path]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> Callable[..., Path]:
    """`build("clang++-22", "-g1")`: the program compiled so, in a directory of its own."""
    built: dict[tuple[str, ...], Path] = {}

    def compile_(compiler: str, *flags: str, name: str = "program") -> Path:
        key = (compiler, *flags, name)
        if key not in built:
            built[key] = tmp_path_factory.mktemp("built") / name
            compile_program(built[key], tool(compiler), *flags)
        return built[key]

    return compile_


def assert_as_llvm(path: Path, tmp_path: Path, *, judge: Path | None = None, step: int = 1) -> int:
    """Compare every byte of code; the greatest number of frames seen."""
    image = Image.open(path)
    addresses = code_addresses(image, step)
    expected = symbolize(without_symbols(judge or path, tmp_path / "bare"), addresses.tolist())
    debug = DebugInfo.open(image)
    actual = list(as_tuples(debug.frames(addresses)))
    assert_places_are_those_frames(debug, addresses, actual)
    exported = (image.section_data(".dynstr") or b"").split(b"\0")
    for got, wanted in zip(actual, expected, strict=True):
        # Where DWARF has no name, llvm-symbolizer takes that of a dynamic symbol.
        if len(got) == 1 and not got[0][0] and wanted and wanted[0][0].encode() in exported:
            wanted[0] = ("", *wanted[0][1:])
    wrong = [
        f"{address:#x}: {got}, not {wanted}"
        for address, got, wanted in zip(addresses.tolist(), actual, expected, strict=True)
        if telling(got) != wanted
    ]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(addresses)}", *wrong[:4]])
    assert any(expected)
    return max(map(len, actual))


def assert_places_are_those_frames(
    debug: DebugInfo, addresses: np.ndarray, expected: list[list[Frame]]
) -> None:
    found, place = debug.places(addresses)
    actual = list(frames_of(found))
    without_files = [[frame[:4] for frame in row] for row in expected]
    assert [actual[i] for i in place.tolist()] == without_files


CLANG = ("-fuse-ld=lld",)
VARIANTS = {
    "clang dwarf 5 lines only": ("clang++-22", *CLANG, "-g1"),
    "clang dwarf 4 lines only": ("clang++-22", *CLANG, "-g1", "-gdwarf-4"),
    "clang dwarf 5": ("clang++-22", *CLANG, "-g", "-fdebug-info-for-profiling"),
    "clang dwarf 4": ("clang++-22", *CLANG, "-g", "-gdwarf-4", "-fdebug-info-for-profiling"),
    "clang 64-bit dwarf": ("clang++-22", *CLANG, "-g", "-gdwarf64"),
    "clang unique names": (
        "clang++-22", *CLANG, "-g1", "-funique-internal-linkage-names", "-gsimple-template-names",
    ),
    "clang zlib, type units": (
        "clang++-22", *CLANG, "-g", "-gz=zlib", "-fdebug-types-section",
    ),
    "clang zstd, aranges": ("clang++-22", *CLANG, "-g", "-gz=zstd", "-gdwarf-aranges"),
    "clang dropped and folded": (
        "clang++-22", *CLANG, "-g1", "-gdwarf-4", "-ffunction-sections",
        "-Wl,--gc-sections,--icf=all",
    ),
    "clang dropped and folded, dwarf 5": (
        "clang++-22", *CLANG, "-g", "-ffunction-sections", "-Wl,--gc-sections,--icf=all",
    ),
    "clang lto, folded": (
        "clang++-22", *CLANG, "-g", "-flto", "-Wl,--icf=all", "-fdebug-info-for-profiling",
    ),
    "clang relocations kept": ("clang++-22", *CLANG, "-g1", "-Wl,--emit-relocs"),
    "clang static": ("clang++-22", *CLANG, "-g1", "-no-pie"),
    "clang blocks apart": ("clang++-22", *CLANG, "-g", "-fbasic-block-sections=all"),
    "clang for aarch64": (
        "clang++-22", *CLANG, "-g", "-fdebug-info-for-profiling", "--target=aarch64-linux-gnu",
        "-nostdlib", "-fno-rtti", "-Wl,-e,main,--unresolved-symbols=ignore-all",
    ),
    "clang for riscv64": (
        "clang++-22", *CLANG, "-g", "-fdebug-info-for-profiling", "--target=riscv64-linux-gnu",
        "-nostdlib", "-fno-rtti", "-Wl,-e,main,--unresolved-symbols=ignore-all",
    ),
    "gcc dwarf 5": ("g++", "-g"),
    "gcc type units": ("g++", "-g", "-fdebug-types-section"),
    "gcc dwarf 5 lines only": ("g++", "-g1"),
    "gcc dwarf 4": ("g++", "-g", "-gdwarf-4"),
    "gcc dwarf 3": ("g++", "-g", "-gdwarf-3"),
    "gcc dwarf 2": ("g++", "-g", "-gdwarf-2", "-gstrict-dwarf"),
    "gcc lto": ("g++", "-g", "-flto"),
    "gcc dropped": ("g++", "-g", "-ffunction-sections", "-Wl,--gc-sections"),
    "gcc cold code apart": ("g++", "-g", "-O3", "-freorder-blocks-and-partition"),
}  # fmt: skip


@pytest.mark.parametrize("flags", VARIANTS.values(), ids=VARIANTS)
def test_each_byte_has_the_frames_that_llvm_gives_it(
    build: Build, flags: tuple[str, ...], tmp_path: Path, tool: Tool
) -> None:
    tool("llvm-symbolizer-22")
    assert assert_as_llvm(build(*flags), tmp_path) > 5


SPLIT = {
    "clang dwarf 5": ("clang++-22", *CLANG, "-g", "-gsplit-dwarf"),
    "clang dwarf 4": ("clang++-22", *CLANG, "-g", "-gdwarf-4", "-gsplit-dwarf"),
    "clang inlining in the skeleton": (
        "clang++-22", *CLANG, "-g1", "-gsplit-dwarf", "-fsplit-dwarf-inlining",
    ),
    "gcc dwarf 5": ("g++", "-g", "-gsplit-dwarf"),
    "gcc dwarf 4": ("g++", "-g", "-gdwarf-4", "-gsplit-dwarf"),
}  # fmt: skip


@pytest.mark.parametrize("flags", SPLIT.values(), ids=SPLIT)
def test_split_files_are_read_from_where_they_were_compiled(
    build: Build, flags: tuple[str, ...], tmp_path: Path, tool: Tool
) -> None:
    tool("llvm-symbolizer-22")
    assert assert_as_llvm(build(*flags), tmp_path) > 5


def test_split_sections_are_read_from_object_files(
    tmp_path: Path, run: Callable[..., object], tool: Tool
) -> None:
    compiler = tool("clang++-22")
    for name in ("inlining", "other"):
        flags = ("-O2", "-g", "-gsplit-dwarf=single", "-c")
        run(compiler, *flags, SOURCES / f"{name}.cpp", "-o", f"{name}.o", cwd=tmp_path)
    run(compiler, *CLANG, "inlining.o", "other.o", "-o", "program", cwd=tmp_path)
    assert assert_as_llvm(tmp_path / "program", tmp_path) > 5


@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
def test_a_package_of_split_files_is_read(
    build: Build, version: str, tmp_path: Path, tool: Tool
) -> None:
    program = build("clang++-22", *CLANG, "-g", version, "-gsplit-dwarf")
    copy = tmp_path / "alone" / "program"
    copy.parent.mkdir()
    shutil.copy(program, copy)
    package = subprocess.run(
        [tool("llvm-dwp-22"), "-e", program, "-o", f"{copy}.dwp"], cwd=program.parent
    )
    assert package.returncode == 0
    with hidden(program.parent.glob("*.dwo")):
        assert assert_as_llvm(copy, tmp_path) > 5
        assert not DebugInfo.open(Image.open(copy)).health()


@pytest.mark.parametrize("flag", ["-fsplit-dwarf-inlining", "-fno-split-dwarf-inlining"])
def test_without_the_split_files_the_skeleton_says_what_it_can(
    build: Build, flag: str, tmp_path: Path, tool: Tool
) -> None:
    tool("llvm-symbolizer-22")
    program = build("clang++-22", *CLANG, "-g", "-gsplit-dwarf", flag, name="skeleton")
    with hidden(program.parent.glob("*.dwo")):
        deepest = assert_as_llvm(program, tmp_path)
        info = DebugInfo.open(Image.open(program))
        info.frames(code_addresses(info.image))
        info.places(code_addresses(info.image))
        info.functions()  # reads again what places() forgot, and says no problem twice
    assert deepest > 5 if flag == "-fsplit-dwarf-inlining" else deepest == 1
    assert info.health() == {"units whose split debug info (.dwo, .dwp) was not found": 2}


class hidden:  # noqa: N801
    """Files moved away for the length of a `with` block."""

    def __init__(self, paths: Iterator[Path]) -> None:
        self.paths = list(paths)
        assert self.paths

    def __enter__(self) -> None:
        for path in self.paths:
            path.rename(f"{path}.hidden")

    def __exit__(self, *_: object) -> None:
        for path in self.paths:
            Path(f"{path}.hidden").rename(path)


def test_a_separate_file_is_found_by_its_link(
    build: Build, tmp_path: Path, run: Callable[..., object]
) -> None:
    whole = build("clang++-22", *CLANG, "-g", "-Wl,--build-id=none")
    stripped = tmp_path / "program"
    (tmp_path / ".debug").mkdir()
    debug = tmp_path / ".debug" / "program.debug"
    run("llvm-objcopy-22", "--only-keep-debug", whole, debug)
    run("llvm-objcopy-22", "--strip-debug", f"--add-gnu-debuglink={debug}", whole, stripped)
    assert assert_as_llvm(stripped, tmp_path, judge=whole) > 5
    debug.write_bytes(debug.read_bytes() + b"changed")
    assert not DebugInfo.open(Image.open(stripped)).present


@pytest.mark.parametrize("packed", ["-gz=none", "-gz=zstd"])
def test_a_separate_file_is_found_by_build_id(
    build: Build, packed: str, tmp_path: Path, run: Callable[..., object]
) -> None:
    whole = build("clang++-22", *CLANG, "-g", packed, "-Wl,--build-id=sha1")
    stripped = tmp_path / "program"
    run("llvm-objcopy-22", "--strip-all", whole, stripped)
    image = Image.open(stripped)
    assert image.build_id is not None
    assert not DebugInfo.open(image).present
    root = tmp_path / "debug"
    debug = root / ".build-id" / image.build_id[:2] / f"{image.build_id[2:]}.debug"
    debug.parent.mkdir(parents=True)
    run("llvm-objcopy-22", "--only-keep-debug", whole, debug)
    addresses = code_addresses(image, 3)
    apart = DebugInfo.open(image, (root,)).frames(addresses)
    together = DebugInfo.open(Image.open(whole)).frames(addresses)
    assert list(as_tuples(apart)) == list(as_tuples(together))
    assert any(as_tuples(apart))


def test_what_dwz_moved_to_another_file_is_read_from_there(
    tmp_path: Path, run: Callable[..., object], tool: Tool
) -> None:
    for name, target in (("moved_main.s", "main.o"), ("moved_shared.s", "shared.debug")):
        run(tool("clang-22"), "-c", SOURCES / name, "-o", tmp_path / target)
    run(tool("ld.lld-22"), tmp_path / "main.o", "-o", tmp_path / "main")
    image = Image.open(tmp_path / "main")
    text = image.section(".text")
    assert text is not None
    addresses = np.arange(text.address, text.address + 2, dtype=np.uint64)
    info = DebugInfo.open(image)
    assert [[frame[:3] for frame in frames] for frames in as_tuples(info.frames(addresses))] == [
        [("moved", 0, 77)],
        [("shared", 0, 0)],
    ]
    assert sorted(info.functions().names) == ["moved", "shared"]
    assert not info.health()
    (tmp_path / "shared.debug").unlink()
    info = DebugInfo.open(image)
    assert [frames[0][0] for frames in as_tuples(info.frames(addresses))] == ["", ""]
    assert info.health() == {"supplementary debug files (dwz) that were not found": 1}


def test_descriptions_that_go_in_circles_end(
    tmp_path: Path, run: Callable[..., object], tool: Tool
) -> None:
    run(tool("clang-22"), "-c", SOURCES / "circular.s", "-o", tmp_path / "main.o")
    run(tool("ld.lld-22"), tmp_path / "main.o", "-o", tmp_path / "main")
    assert assert_as_llvm(tmp_path / "main", tmp_path) == 2
    functions = DebugInfo.open(Image.open(tmp_path / "main")).functions()
    assert functions.names == ("outer", "itself")


def test_sections_packed_as_by_old_tools_are_read(
    build: Build, tmp_path: Path, run: Callable[..., object], tool: Tool
) -> None:
    whole = build("clang++-22", *CLANG, "-g")
    packed = tmp_path / "packed"
    run(tool("objcopy"), "--compress-debug-sections=zlib-gnu", whole, packed)
    assert Image.open(packed).section(".zdebug_info") is not None
    assert assert_as_llvm(packed, tmp_path, judge=whole) > 5


def test_a_program_without_debug_info_gives_no_frames_and_says_why(
    build: Build, tmp_path: Path
) -> None:
    info = DebugInfo.open(Image.open(build("clang++-22", *CLANG)), (tmp_path,))
    addresses = code_addresses(info.image)
    frames, lines = info.frames(addresses), info.lines(addresses)
    assert not info.present
    assert "-g1" in info.missing_reason
    assert len(frames) == len(addresses)
    assert frames.offsets[-1] == len(frames.line) == 0
    assert set(lines.file.tolist()) == {-1}
    assert len(info.functions().names) == len(info.functions_for(addresses).range_start) == 0


CORPUS = [
    *(f"llvm-profgen/{name}.perfbin" for name in (
        "func-split", "inline-noprobe2", "multi-load-segs", "noinline-cs-noprobe",
        "noinline-cs-pseudoprobe", "noprobe", "recursion-compression-noprobe",
        "unique-linkage-name-dwarf",
    )),
    "autofdo/test.binary",
    "autofdo/propeller_sample_1.bin",
]  # fmt: skip


@pytest.mark.parametrize("name", CORPUS)
def test_real_programs_have_the_frames_that_llvm_gives_them(
    corpus: Corpus, name: str, tmp_path: Path, tool: Tool
) -> None:
    tool("llvm-symbolizer-22")
    assert_as_llvm(corpus(name), tmp_path)


def test_sqlite_has_the_frames_that_llvm_gives_it(
    corpus: Corpus, tmp_path: Path, tool: Tool
) -> None:
    tool("llvm-symbolizer-22")
    assert assert_as_llvm(corpus("sqlite/sq.zst"), tmp_path, step=29) > 5


def test_only_units_that_cover_the_addresses_are_decoded(build: Build) -> None:
    info = DebugInfo.open(Image.open(build("clang++-22", *CLANG, "-g1")))
    everything = info.functions()
    assert info.units_decoded == 2
    main = everything.range_start[everything.function == everything.names.index("main")]
    info = DebugInfo.open(info.image)
    assert len(info.frames(np.zeros(0, np.uint64))) == 0
    assert info.units_decoded == 0
    assert len(info.frames(main)) == 1
    assert info.units_decoded == 1
    near = info.functions_for(main)
    assert info.units_decoded == 1
    assert "main" in near.names
    assert "_Z5entryiP5Shape" not in near.names


def test_lines_are_those_of_the_leaf_frames(build: Build) -> None:
    info = DebugInfo.open(Image.open(build("clang++-22", *CLANG, "-g")))
    addresses = code_addresses(info.image)
    frames, lines = info.frames(addresses), info.lines(addresses)
    leaves = frames.offsets[1:] - 1
    known = (np.diff(frames.offsets) > 0) & (lines.file >= 0)
    assert known.sum() > 100
    assert np.array_equal(frames.line[leaves[known]], lines.line[known])
    assert np.array_equal(frames.discriminator[leaves[known]], lines.discriminator[known])
    assert [frames.files[i] for i in frames.file[leaves[known]]] == [
        lines.files[i] for i in lines.file[known]
    ]


def test_lines_of_other_code_than_expected_are_read_once_they_are_asked_for(build: Build) -> None:
    flags = ("-g1", "-ffunction-sections", "-Wl,--emit-relocs")  # each function has its own rows
    image = Image.open(build("clang++-22", *CLANG, *flags))
    whole, some = DebugInfo.open(image), DebugInfo.open(image)
    functions, addresses = whole.functions(), code_addresses(image)
    main = functions.range_start[functions.function == functions.names.index("main")]
    some.expect(main)

    def rows() -> int:
        tables = map(some._symbolizer.line_table, range(len(some._symbolizer.dwarf.units)))
        return sum(len(table.rows) for table in tables if table is not None)

    assert_same(some.lines(main), whole.lines(main))
    kept = rows()
    assert_same(some.lines(addresses), whole.lines(addresses))
    assert 0 < kept < rows()


def assert_same(found: Lines, expected: Lines) -> None:
    assert found.files == expected.files
    for name in ("file", "line", "discriminator", "column"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))


def test_places_of_addresses_in_any_order(build: Build) -> None:
    image = Image.open(build("clang++-22", *CLANG, "-g1"))
    addresses = np.random.default_rng(2).permutation(code_addresses(image))
    debug = DebugInfo.open(image)
    assert_places_are_those_frames(debug, addresses, list(as_tuples(debug.frames(addresses))))
    found, _ = debug.places(np.sort(addresses))
    assert len(found) < len(addresses) / 4


def test_addresses_may_come_in_any_order_and_more_than_once(build: Build) -> None:
    info = DebugInfo.open(Image.open(build("clang++-22", *CLANG, "-g1")))
    addresses = code_addresses(info.image)
    in_order = list(as_tuples(info.frames(addresses)))
    order = np.random.default_rng(1).integers(0, len(addresses), 3000)
    assert list(as_tuples(info.frames(addresses[order]))) == [in_order[i] for i in order]


@pytest.mark.parametrize("name", ["clang dwarf 5", "gcc dwarf 4", "clang dropped and folded"])
def test_functions_are_the_subprograms_that_pyelftools_sees(build: Build, name: str) -> None:
    image = Image.open(build(*VARIANTS[name]))
    functions = DebugInfo.open(image).functions()
    expected = subprograms(image)
    actual = {
        start: (end, functions.names[function])
        for start, end, function in zip(
            functions.range_start.tolist(),
            functions.range_end.tolist(),
            functions.function.tolist(),
            strict=True,
        )
    }
    assert actual == expected
    assert sorted(functions.names) == sorted({name for _, name in expected.values()})
    assert len(actual) > 5


def subprograms(image: Image) -> dict[int, tuple[int, str]]:
    """End and name of each function by its start; the first in the file wins."""
    from elftools.elf.elffile import ELFFile

    lowest = min(s.address for s in image.layout.segments if s.executable) & ~0xFFF
    found: dict[int, tuple[int, str]] = {}
    with open(image.path, "rb") as file:
        dwarf = ELFFile(file).get_dwarf_info(relocate_dwarf_sections=False)
        for unit in dwarf.iter_CUs():
            for die in unit.iter_DIEs():
                if die.tag == "DW_TAG_subprogram" and "DW_AT_high_pc" in die.attributes:
                    start = die.attributes["DW_AT_low_pc"].value
                    high = die.attributes["DW_AT_high_pc"]
                    is_address = high.form == "DW_FORM_addr"
                    end = high.value if is_address else start + high.value
                    if start >= lowest and start < end and start < 1 << 63:
                        found.setdefault(start, (end, name_of(die)))
    return found


def name_of(die: object) -> str:
    for wanted in ("DW_AT_linkage_name", "DW_AT_name"):
        at = die
        while at is not None:
            if wanted in at.attributes:
                return at.attributes[wanted].value.decode()
            links = [
                a for a in ("DW_AT_specification", "DW_AT_abstract_origin") if a in at.attributes
            ]
            at = at.get_DIE_from_attribute(links[0]) if links else None
    raise AssertionError("a function without a name")


def test_functions_are_found_by_address() -> None:
    u64 = lambda *numbers: np.array(numbers, np.uint64)  # noqa: E731
    functions = DwarfFunctions(u64(16, 40), u64(32, 41), np.array([0, 0], np.int32), ("f",))
    assert functions.containing(u64(15, 16, 31, 32, 40, 41)).tolist() == [-1, 0, 0, -1, 1, -1]


@pytest.mark.parametrize("name", ["clang dwarf 5", "gcc dwarf 4", "clang zlib, type units"])
def test_damage_neither_raises_nor_hangs(build: Build, name: str) -> None:
    image = Image.open(build(*VARIANTS[name]))
    whole = Path(image.path).read_bytes()
    sections = [s for s in image.sections if s.name.startswith(".debug_") and s.size]
    addresses = code_addresses(image, 7)
    rng = random.Random(name)
    reasons = set()
    for _ in range(40):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 3, 30])):
            section = rng.choice(sections)
            at = section.file_offset + rng.randrange(section.size)
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        info = DebugInfo.open(
            Image(image.layout, image.sections, FileInMemory(image.path, bytes(data)))
        )
        assert len(info.frames(addresses)) == len(addresses)
        info.functions()
        reasons |= info.health().keys()
    assert reasons


def test_what_was_let_go_is_read_again_and_not_counted_again(build: Build) -> None:
    image = Image.open(build(*VARIANTS["clang dwarf 5"]))
    section = image.section(".debug_line")
    assert section is not None
    data = bytearray(Path(image.path).read_bytes())
    middle = section.file_offset + section.size // 2
    data[middle : section.file_offset + section.size] = bytes(section.size - section.size // 2)
    damaged = Image(image.layout, image.sections, FileInMemory(image.path, bytes(data)))
    addresses = code_addresses(image, 7)
    info = DebugInfo.open(damaged)
    before, problems = info.frames(addresses), info.health()
    assert problems
    info.release()
    assert info.units_decoded == 0
    after = info.frames(addresses)
    assert np.array_equal(before.line, after.line)
    assert before.names == after.names
    assert info.health() == problems
