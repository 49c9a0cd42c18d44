"""Files with debug information beside programs: found, and refused where they are of another build.

Made by the tools that make them: gcc, clang, objcopy, dwz. gdb refuses what is refused here.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from builders.fixtures import Run, Tool
from builders.frames import as_tuples, code_addresses
from builders.programs import SOURCES, compile_program
from builders.recordings import PIE

from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.dwarf.loader import SectionReader
from lbr2pgo.program.elf.image import Image

OTHER_BUILD = "separate debug files refused: their build-id or checksum is another"
OTHER_SUPPLEMENT = "supplementary debug files (dwz) refused: their build-id is another"
NO_SUPPLEMENT = "supplementary debug files (dwz) that were not found"
OTHER_SPLIT = "units whose split debug info (.dwo, .dwp) was refused: it is of another build"


def frames(program: Path, *directories: Path) -> tuple[list[object], dict[str, int]]:
    """What is said of every byte of code, and what was wrong."""
    info = DebugInfo.open(Image.open(program), directories)
    addresses = code_addresses(info.image)
    return list(as_tuples(info.frames(addresses))), dict(info.health())


@pytest.fixture
def builds(tmp_path: Path, tool: Tool) -> Callable[..., Path]:
    """Compile the program in a directory of its own."""

    def build(name: str, *flags: str) -> Path:
        (tmp_path / name).mkdir()
        return compile_program(tmp_path / name / "program", tool("g++"), "-g", *flags)

    return build


@pytest.fixture(params=["", "-5"], ids=["gnu_debugaltlink", "debug_sup"])
def shared(
    request: pytest.FixtureRequest,
    builds: Callable[..., Path],
    run: Run,
    tool: Tool,
) -> Callable[[str, str], Path]:
    """Build two programs and let dwz move what they share to a file beside the first."""
    flags = [request.param] if request.param else []

    def make(name: str, flag: str) -> Path:
        program = builds(name, flag)
        other = compile_program(program.with_name("other"), tool("g++"), "-g", flag, "-O0")
        command = [tool("dwz"), *flags, "-m", "common.debug", "-M", "common.debug"]
        run(*command, program.name, other.name, cwd=program.parent)
        return program

    return make


def test_what_dwz_moved_is_read_from_the_file_of_that_build_only(
    shared: Callable[[str, str], Path], builds: Callable[..., Path]
) -> None:
    expected, _ = frames(builds("plain", "-O2"))
    program = shared("one", "-O2")
    assert frames(program) == (expected, {})
    common = program.with_name("common.debug")
    shutil.copy(shared("two", "-gdwarf-4").with_name("common.debug"), common)
    without, problems = frames(program)
    assert problems == {OTHER_SUPPLEMENT: 1}
    common.unlink()
    assert frames(program) == (without, {NO_SUPPLEMENT: 1})
    known = {name for row in expected for name, *_ in row}
    assert {name for row in without for name, *_ in row} < known | {""}


def test_a_supplementary_file_is_looked_for_by_build_id_too(
    tmp_path: Path, run: Run, tool: Tool
) -> None:
    for name, target in (("moved_main.s", "main.o"), ("moved_shared.s", "shared.debug")):
        run(tool("clang-22"), "-c", SOURCES / name, "-o", tmp_path / target)
    run(tool("ld.lld-22"), tmp_path / "main.o", "-o", tmp_path / "main")
    expected = frames(tmp_path / "main")
    assert expected[1] == {}
    place = tmp_path / "debug" / ".build-id" / "88" / "77665544332211.debug"
    place.parent.mkdir(parents=True)
    (tmp_path / "shared.debug").rename(place)
    assert frames(tmp_path / "main", tmp_path / "debug") == expected
    place.write_bytes(place.read_bytes().replace(bytes.fromhex("8877665544332211"), b"12345678"))
    assert frames(tmp_path / "main", tmp_path / "debug")[1] == {OTHER_SUPPLEMENT: 1}


def test_what_lies_under_a_build_id_must_have_it(
    builds: Callable[..., Path], tmp_path: Path, run: Run
) -> None:
    program, other = builds("one", "-O2"), builds("two", "-O1")
    build_id = Image.open(program).build_id
    assert build_id is not None
    place = tmp_path / "debug" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    place.parent.mkdir(parents=True)
    stripped = tmp_path / "program"
    run("objcopy", "--strip-debug", program, stripped)
    run("objcopy", "--only-keep-debug", program, place)
    assert frames(stripped, tmp_path / "debug") == frames(program)
    run("objcopy", "--only-keep-debug", other, place)
    info = DebugInfo.open(Image.open(stripped), (tmp_path / "debug",))
    assert not info.present
    assert info.health() == {OTHER_BUILD: 1}
    assert f"({OTHER_BUILD}: 1)" in info.missing_reason


def test_what_a_link_names_must_have_its_checksum(
    builds: Callable[..., Path], tmp_path: Path, run: Run
) -> None:
    program, other = builds("one", "-O2"), builds("two", "-O1")
    stripped, debug = tmp_path / "program", tmp_path / "program.debug"
    run("objcopy", "--only-keep-debug", program, debug)
    run("objcopy", "--strip-debug", f"--add-gnu-debuglink={debug}", program, stripped)
    assert frames(stripped) == frames(program)
    run("objcopy", "--only-keep-debug", other, debug)
    assert frames(stripped)[1] == {OTHER_BUILD: 1}
    # The right one is found behind one that is refused.
    (tmp_path / ".debug").mkdir()
    run("objcopy", "--only-keep-debug", program, tmp_path / ".debug" / "program.debug")
    assert frames(stripped)[0] == frames(program)[0]


@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
def test_a_split_file_of_another_build_is_refused(
    builds: Callable[..., Path], version: str
) -> None:
    program = builds("one", "-O2", "-gsplit-dwarf", version)
    whole, problems = frames(program)
    assert problems == {}
    other = builds("two", "-O1", "-gsplit-dwarf", version)
    for split in other.parent.glob("*.dwo"):
        shutil.copy(split, program.parent)
    skeleton, problems = frames(program)
    assert problems == {OTHER_SPLIT: 2}
    for split in program.parent.glob("*.dwo"):
        split.unlink()
    assert frames(program)[0] == skeleton != whole


def test_a_damaged_split_file_is_told(builds: Callable[..., Path]) -> None:
    program = builds("one", "-O2", "-gsplit-dwarf")
    for split in program.parent.glob("*.dwo"):
        split.write_bytes(split.read_bytes()[:200])  # with the head, which says where sections are
    assert frames(program)[1]["files of split debug info that are damaged"] == 2


def test_a_section_that_goes_on_behind_the_end_of_the_file_is_not_read() -> None:
    """Or else a unit that is cut off there would be waited for in vain."""
    whole = Image.open(PIE)
    beyond = tuple(replace(s, size=s.size + 2**40) for s in whole.sections)
    problems: Counter[str] = Counter()
    read = SectionReader(Image(whole.layout, beyond, whole.file), problems)
    assert read("info").size == 0
    assert problems == {"sections of debug info that go on behind the end of the file": 1}
    assert read("none").size == 0
    assert problems.total() == 1
