from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.sources.perf_script.offsets import MappedCode
from lbr2pgo.sources.perf_script.reader import PerfScript

MAP = "sq 7/7 0.0: PERF_RECORD_MMAP2 7/7: [0x55000(0x2000) @ 0x1000 08:01 1 0]: r-xp /bin/sq\n"


def text_of(*frames: int, times: int = 600) -> str:
    stack = "".join(f"\t{frame:16x}\n" for frame in frames)
    samples = (
        f"sq 7/7 {i + 1}.0: cycles: \n{stack} 0x55010/0x55020/P/-/-/1\n" for i in range(times)
    )
    return MAP + "".join(samples)


def read(path: Path, text: str) -> tuple[list[int], int, dict[str, int]]:
    """The frames of the first sample, its ip, and what was lost."""
    path.write_text(text)
    source = PerfScript(path)
    batch = next(batch for batch in source.batches() if len(batch))
    list(source.batches())
    assert batch.chains is not None
    frames = batch.chains.frames[: batch.chains.offsets[1]].tolist()
    return frames, int(batch.ip[0]), {k: v for k, v in source.health().items() if v}


def test_offsets_in_files_are_no_call_stacks(tmp_path: Path) -> None:
    """The kernel's addresses stay as they are."""
    frames, ip, lost = read(tmp_path / "p.txt", text_of(1 << 63 | 5, 0x1010, 0x1500))
    assert (frames, ip) == ([], 0)
    assert [count for why, count in lost.items() if "offsets in files" in why] == [600]


@pytest.mark.parametrize("frames", [(0x55010, 0x55500), (0x55010, 0x9999000), (1 << 63 | 5,)])
def test_addresses_are(frames: tuple[int, ...], tmp_path: Path) -> None:
    assert read(tmp_path / "p.txt", text_of(*frames)) == ([*frames], frames[0], {})


def test_a_few_frames_tell_nothing(tmp_path: Path) -> None:
    found, _, lost = read(tmp_path / "p.txt", text_of(0x1010, 0x1500, times=10))
    assert found == [0x1010, 0x1500]
    assert not lost


def test_without_mappings_nobody_can_tell(tmp_path: Path) -> None:
    text = text_of(0x1010, 0x1500).replace(MAP, "")
    assert read(tmp_path / "p.txt", text) == ([0x1010, 0x1500], 0x1010, {})


def test_mappings_may_overlap() -> None:
    maps = [Mmap(1, 1, 0, s, n, 0, "/a") for s, n in ((0x1000, 0x9000), (0x2000, 0x100))]
    places = np.array([0xFFF, 0x1000, 0x5000, 0xA000], np.uint64)
    assert MappedCode.of(maps).holds(places).tolist() == [False, True, True, False]


def test_a_mapping_may_go_on_behind_the_last_address() -> None:
    mapped = MappedCode.of([Mmap(1, 1, 0, 0x1000, (1 << 64) - 1, 0, "/a")])
    assert mapped.holds(np.array([0xFFF, 0x1000, 1 << 62], np.uint64)).tolist() == [
        False,
        True,
        True,
    ]
