from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders.bolt import build

from lbr2pgo.program.elf.eh_frame import Cursor, DamagedError, landing_pads, read_frames
from lbr2pgo.program.elf.image import Image

Tool = Callable[[str], str]
_ENTRY = re.compile(r"FDE cie=\S+ pc=([0-9a-f]+)\.\.([0-9a-f]+)")


def readelf_ranges(tool: Tool, binary: Path) -> list[tuple[int, int]]:
    said = subprocess.run(
        [tool("readelf"), "--debug-dump=frames", binary], capture_output=True, text=True
    ).stdout
    return sorted((int(a, 16), int(b, 16)) for a, b in _ENTRY.findall(said))


def ranges(image: Image) -> list[tuple[int, int]]:
    frames = read_frames(image)
    return [(a, a + n) for a, n in zip(frames.start.tolist(), frames.size.tolist(), strict=True)]


@pytest.fixture(scope="module", params=["g++", "clang++-22"])
def throws(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tool: Tool
) -> Path:
    target = tmp_path_factory.mktemp("unwind") / "throws"
    return build(target, ["throws.cpp"], tool(request.param), "-O2")


class TestFrames:
    def test_ranges_are_those_of_readelf(self, throws: Path, tool: Tool) -> None:
        expected = readelf_ranges(tool, throws)
        assert len(expected) > 10
        assert ranges(Image.open(throws)) == expected

    @pytest.mark.parametrize("name", ["sqlite/sq.zst", "bolt/openssl.zst", "autofdo/test.binary"])
    def test_ranges_of_the_corpus(
        self, name: str, corpus: Callable[[str], Path], tool: Tool
    ) -> None:
        binary = corpus(name)
        expected = [pair for pair in readelf_ranges(tool, binary) if pair[0]]
        assert ranges(Image.open(binary)) == expected

    def test_an_entry_is_found_by_its_start(self, throws: Path) -> None:
        frames = read_frames(Image.open(throws))
        start = int(frames.start[3])
        assert frames.index_at(start) == 3
        assert frames.index_at(start + 1) is None

    def test_a_file_without_the_section_has_none(
        self, throws: Path, tool: Tool, tmp_path: Path
    ) -> None:
        bare = tmp_path / "bare"
        remove = ["--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr"]
        subprocess.run([tool("objcopy"), *remove, throws, bare], check=True)
        assert ranges(Image.open(bare)) == []

    def test_damage_leaves_what_comes_before_it(self, throws: Path, tmp_path: Path) -> None:
        image = Image.open(throws)
        section = image.section(".eh_frame")
        assert section is not None
        content = bytearray(throws.read_bytes())
        whole = ranges(image)
        middle = section.file_offset + section.size // 2
        content[middle : section.file_offset + section.size] = b"\xf0" * (
            section.size - section.size // 2
        )
        damaged = tmp_path / "damaged"
        damaged.write_bytes(content)
        left = ranges(Image.open(damaged))
        assert 0 < len(left) < len(whole)
        assert set(left) - set(whole) == set() or len(set(left) - set(whole)) == 1

    def test_random_bytes_end(self, throws: Path, tmp_path: Path) -> None:
        image = Image.open(throws)
        section = image.section(".eh_frame")
        assert section is not None
        original = throws.read_bytes()
        rng = np.random.default_rng(5)
        for _ in range(20):
            content = bytearray(original)
            noise = rng.integers(0, 256, section.size, dtype=np.uint8).tobytes()
            content[section.file_offset : section.file_offset + section.size] = noise
            path = tmp_path / "noise"
            path.write_bytes(content)
            ranges(Image.open(path))


class TestLandingPads:
    def test_pads_are_those_that_bolt_sees(self, throws: Path, tool: Tool) -> None:
        said = subprocess.run(
            [tool("llvm-bolt-22"), throws, "-o", "/dev/null", "--lite=0", "--print-exceptions"],
            capture_output=True,
            text=True,
        ).stdout
        expected: dict[int, set[int]] = {}
        area = 0
        for line in said.splitlines():
            if match := re.match(r"\[LSDA at 0x([0-9a-f]+) for", line):
                area = int(match[1], 16)
                expected[area] = set()
            elif match := re.match(r"Call Site: .* landing pad: 0x([0-9a-f]+);", line):
                expected[area].add(int(match[1], 16))
        assert len(expected) >= 3
        image = Image.open(throws)
        frames = read_frames(image)
        for start, size, lsda in zip(
            frames.start.tolist(), frames.size.tolist(), frames.lsda.tolist(), strict=True
        ):
            if lsda in expected and not (pads := landing_pads(image, start, size, lsda))[1]:
                assert set(pads[0]) == expected[lsda] - {0}

    def test_reading_stops_at_a_pad_outside_the_function(self, throws: Path) -> None:
        image = Image.open(throws)
        frames = read_frames(image)
        row = int(np.flatnonzero(frames.lsda)[0])
        start, lsda = int(frames.start[row]), int(frames.lsda[row])
        assert not landing_pads(image, start, int(frames.size[row]), lsda)[1]
        assert landing_pads(image, start, 1, lsda) == ([], True)

    def test_an_area_outside_all_sections_has_none(self, throws: Path) -> None:
        assert landing_pads(Image.open(throws), 0x1000, 16, 1 << 40) == ([], False)


class TestCursor:
    @pytest.mark.parametrize(
        ("data", "unsigned", "signed"),
        [(b"\x02", 2, 2), (b"\x7f", 127, -1), (b"\x80\x01", 128, 128), (b"\x80\x7f", 16256, -128)],
    )
    def test_leb128(self, data: bytes, unsigned: int, signed: int) -> None:
        assert Cursor(data, 0).uleb() == unsigned
        assert Cursor(data, 0).sleb() == signed

    def test_pointers_relative_to_where_they_stand(self) -> None:
        cursor = Cursor(b"\0\0" + struct.pack("<i", -0x10), 0x1000, at=2)
        assert cursor.pointer(0x1B) == 0x1002 - 0x10

    def test_a_null_pointer_is_relative_to_nothing(self) -> None:
        assert Cursor(bytes(4), 0x1000).pointer(0x1B) == 0

    @pytest.mark.parametrize("encoding", [0x05, 0x0D, 0x50, 0x30])
    def test_unknown_encodings(self, encoding: int) -> None:
        with pytest.raises(DamagedError, match="encoding"):
            Cursor(bytes(16), 0).pointer(encoding)

    @pytest.mark.parametrize("encoding", [0x0B, 0x04, 0x01])
    def test_too_little_data(self, encoding: int) -> None:
        with pytest.raises(DamagedError, match="early"):
            Cursor(b"\x80", 0).pointer(encoding)
