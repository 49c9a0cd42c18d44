from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from builders.bolt import build
from builders.fixtures import Corpus, Tool

from lbr2pgo.program.elf.eh_frame import landing_pads, read_frames
from lbr2pgo.program.elf.image import Image

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
    def test_ranges_of_the_corpus(self, name: str, corpus: Corpus, tool: Tool) -> None:
        binary = corpus(name)
        expected = [pair for pair in readelf_ranges(tool, binary) if pair[0]]
        assert ranges(Image.open(binary)) == expected

    def test_an_lsda_is_found_by_the_start_of_its_function(self, throws: Path) -> None:
        frames = read_frames(Image.open(throws))
        row = int(np.flatnonzero(frames.lsda)[0])
        start = frames.start[row]
        asked = np.array([0, start, start + 1, (1 << 64) - 1], np.uint64)
        assert frames.lsda_of(asked).tolist() == [0, int(frames.lsda[row]), 0, 0]

    def test_a_file_without_the_section_has_none(
        self, throws: Path, tool: Tool, tmp_path: Path
    ) -> None:
        bare = tmp_path / "bare"
        remove = ["--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr"]
        subprocess.run([tool("objcopy"), *remove, throws, bare], check=True)
        frames = read_frames(Image.open(bare))
        assert (len(frames.start), frames.health) == (0, {})
        assert frames.lsda_of(np.array([1], np.uint64)).tolist() == [0]

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
        frames = read_frames(Image.open(damaged))
        left = ranges(Image.open(damaged))
        assert 0 < len(left) < len(whole)
        assert len(set(left) - set(whole)) <= 1
        assert set(frames.health) <= {
            "entries of .eh_frame that make no sense",
            "bytes of .eh_frame behind an entry that is too long",
        }
        assert frames.health

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
        seen = set()
        for start, size, lsda in zip(frames.start, frames.size, frames.lsda, strict=True):
            if int(lsda) in expected:
                pads = landing_pads(image, *(np.array([n]) for n in (start, size, lsda)))
                is_whole = expected[int(lsda)] - {0} <= set(range(start, start + size + 1))
                assert set(pads.tolist()) <= expected[int(lsda)]
                assert not is_whole or set(pads.tolist()) == expected[int(lsda)] - {0}
                seen.add(int(lsda))
        assert seen == set(expected)

    def test_an_area_outside_all_sections_has_none(self, throws: Path) -> None:
        column = np.array([0x1000], np.uint64)
        assert landing_pads(Image.open(throws), column, column, column << np.uint64(40)).size == 0

    def test_functions_of_several_tables_are_asked_at_once(self, throws: Path) -> None:
        image = Image.open(throws)
        frames = read_frames(image)
        rows = np.flatnonzero(frames.lsda)
        columns = (frames.start, frames.size, frames.lsda)
        together = landing_pads(image, *(column[rows] for column in columns))
        alone = [landing_pads(image, *(column[[row]] for column in columns)) for row in rows]
        assert np.array_equal(together, np.concatenate(alone))
