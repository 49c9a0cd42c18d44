"""Stacks without their ends, or without what is no code."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.counted_stacks import A, B, C, D, E, F, G, H, counted, lost, rows_of
from builders.recordings import STATIC, STATIC_ENTRY, recorded
from builders.sources import LAYOUT, MemorySource, Sample, mapping

from lbr2pgo.conversion import Conversion, ConvertOptions, convert
from lbr2pgo.counting.chosen_samples import CountingOptions
from lbr2pgo.counting.place import ImageFacts
from lbr2pgo.model.waterfall import check
from lbr2pgo.support.errors import InputError

NEWEST, OLDEST = (0x22A8D0, 0x22A950, 2), (0x22A8E8, 0x22A780, 2)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "perf.data"
    path.write_bytes(recorded([[NEWEST, STATIC_ENTRY, STATIC_ENTRY, OLDEST], [STATIC_ENTRY]]))
    return path


def converted(path: Path, **options: int) -> Conversion:
    return convert(ConvertOptions((path,), STATIC, counting=CountingOptions(**options)))  # type: ignore[arg-type]


def sources(done: Conversion) -> dict[int, int]:
    branches = done.counts.branches()
    return dict(zip(branches.from_.tolist(), branches.count.tolist(), strict=True))


@pytest.mark.parametrize(
    ("options", "kept", "lost"),
    [
        ({}, {NEWEST[0]: 1, STATIC_ENTRY[0]: 3, OLDEST[0]: 1}, 0),
        ({"drop_newest": 1}, {STATIC_ENTRY[0]: 2, OLDEST[0]: 1}, 2),
        ({"drop_oldest": 1}, {NEWEST[0]: 1, STATIC_ENTRY[0]: 2}, 2),
        ({"drop_newest": 2, "drop_oldest": 1}, {STATIC_ENTRY[0]: 1}, 4),
    ],
    ids=["none", "newest", "oldest", "both"],
)
def test_so_many_entries_are_left_out_at_each_end_and_accounted_for(
    recording: Path, options: dict[str, int], kept: dict[int, int], lost: int
) -> None:
    done = converted(recording, **options)
    assert sources(done) == kept
    check(done.tallies)
    assert done.tallies["branches_in_image/dropped"] == lost


def test_fall_throughs_between_the_kept_entries_stay(recording: Path) -> None:
    assert converted(recording).tallies["runs_in_image"] == 3
    assert converted(recording, drop_newest=1).tallies["runs_in_image"] == 2


@pytest.mark.parametrize("dropped", [-1, 1 << 63])
def test_no_stack_has_so_many_entries(dropped: int) -> None:
    with pytest.raises(InputError, match="entries of each stack can't be left out"):
        CountingOptions(drop_oldest=dropped)


def test_on_demand_what_is_no_code_lies_outside() -> None:
    """An entry that leads from outside to such a place is left out, as if it were not there."""
    source = MemorySource([Sample([(B, C), (0, E), (D, A)])], [mapping(base=0)])
    facts = ImageFacts(LAYOUT, code_of_llvm=lambda addresses: addresses != E, believes_entries=True)
    counts = counted(source, facts)
    assert set(rows_of(counts)) == {(B, C, None, 1), (D, A, B, 1)}
    assert lost(counts) == {"outside": 1}


@pytest.mark.parametrize("batch_size", [1, 3])
def test_a_full_stack_raises_doubts_of_all_that_follow_in_whatever_batch(batch_size: int) -> None:
    full, short = [(B, A)] * 32, [(D, C), (F, E), (H, G)]
    samples = [Sample(stack) for stack in (short, full, short)]
    source = MemorySource(samples, [mapping(base=0)], batch_size=batch_size)
    found = counted(source, ImageFacts(LAYOUT, doubts_full_stacks=True))
    assert lost(found) == {"dropped": 4}
