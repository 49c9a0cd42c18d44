"""How far a file was read, from those who read it."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.recordings import PIE, RECORDING

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.counting.count import count
from lbr2pgo.fleet.merge import MergeOptions, merge_files
from lbr2pgo.profiles.counts.format import CountsOutput
from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.sources.perf_script.reader import PerfScript
from lbr2pgo.sources.preaggregated import Preaggregated
from lbr2pgo.sources.text_lines import LineReader
from lbr2pgo.support import headway


class Shares(list[float]):
    """What is told of inputs that hold counts, in order."""

    def __call__(self, samples: int, share: float | None) -> None:
        assert samples == 0
        assert share is not None
        self.append(share)


@pytest.fixture
def shares() -> Shares:
    return Shares()


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("counts") / "a.npz"
    convert(ConvertOptions(profiles=(RECORDING,), binary=PIE, outputs=(CountsOutput(path),)))
    return path


def rises_to_the_end(shares: Shares) -> bool:
    return shares == sorted(shares) and shares[-1] == 1


def test_nothing_is_told_where_nobody_listens() -> None:
    headway.tell(0.5)
    with headway.heard_by(None), headway.part_of([1], 0):
        headway.tell(0.5)


def test_who_listened_before_listens_again_even_after_an_error(shares: Shares) -> None:
    with headway.heard_by(shares):
        with pytest.raises(KeyError), headway.heard_by(None):
            raise KeyError
        headway.tell(0.25)
    headway.tell(0.5)
    assert shares == [0.25]


def test_parts_of_parts(shares: Shares) -> None:
    with headway.heard_by(shares), headway.part_of([1, 1], 1), headway.part_of([3, 1, 0], 1):
        headway.tell(0)
        headway.tell(1)
    assert shares == [0.875, 1]


def test_parts_without_a_size_tell_nothing(shares: Shares) -> None:
    with headway.heard_by(shares), headway.part_of([0, 0], 1):
        headway.tell(1)
    assert shares == []


def test_lines_tell_where_they_are(shares: Shares, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"1234567\n" * 4)
    with headway.heard_by(shares):
        list(LineReader(path, 8).chunks())
    assert shares == [0.25, 0.5, 0.75, 1]


def test_the_first_pass_over_text_is_told(shares: Shares, tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text("  1000 12.000001: 0x401000/0x401020/P/-/-/1\n" * 100)
    with headway.heard_by(shares):
        PerfScript(path, chunk_size=500)
    assert len(shares) >= 8
    assert rises_to_the_end(shares)


def test_opening_saved_counts_is_told(shares: Shares, counts: Path) -> None:
    read_and_replay(Inputs(profiles=(counts, counts), binary=PIE), shares)
    assert len(shares) > 10
    assert any(0 < share < 0.5 for share in shares)
    assert rises_to_the_end(shares)


@pytest.mark.parametrize(("build_id", "passes"), [(None, 1), ("ab" * 20, 2)])
def test_reading_aggregated_counts_is_told(
    build_id: str | None, passes: int, shares: Shares, tmp_path: Path
) -> None:
    path = tmp_path / "counts.preagg"
    path.write_text("B 1010 1020 4 2\n" * 100)
    code = (Segment(0x1000, 0, 0x1000, 0x1000, True),)
    layout = ImageLayout("/bin/x", build_id, "x86-64", True, code)
    count(Preaggregated(path, chunk_size=160), layout, progress=shares)
    assert len(shares) == 10 * passes
    assert shares[0] == 0.1 / passes
    assert rises_to_the_end(shares)


def test_each_file_of_a_merge_is_told(shares: Shares, counts: Path, tmp_path: Path) -> None:
    twice = tmp_path / "twice.npz"
    twice.write_bytes(counts.read_bytes())
    merge_files(MergeOptions((counts, twice), tmp_path / "all.npz"), shares)
    assert shares == [0.5, 1]


def test_each_profile_of_a_merge_is_told(shares: Shares, tmp_path: Path) -> None:
    profile = tmp_path / "x.prof"
    profile.write_text("main:1:1\n 1: 1\n")
    merge_files(MergeOptions((profile, profile), tmp_path / "all.prof"), shares)
    assert shares == [0.5, 1]
