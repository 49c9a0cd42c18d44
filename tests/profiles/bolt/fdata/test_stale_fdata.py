"""Fdata of other builds: a real profile whose functions have grown or shrunk since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.recordings import PIE, RECORDING

from lbr2pgo.analyses.accuracy import measure
from lbr2pgo.analyses.judging import exact_edges_of
from lbr2pgo.cli import main
from lbr2pgo.conversion import ConvertOptions, convert, read
from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.model.waterfall import check
from lbr2pgo.profiles.bolt.fdata import fdata_text
from lbr2pgo.profiles.bolt.fdata.fdata_tables import Fdata, FdataBranches, FdataSamples
from lbr2pgo.profiles.bolt.fdata.stale_fdata import stale_counts
from lbr2pgo.profiles.registry import output, steps
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import replay
from lbr2pgo.support.arrays import U64
from lbr2pgo.support.errors import InputError

EXACT = Path(str(RECORDING).replace(".perf.data", ".exact.npz"))


@pytest.fixture(scope="module")
def program() -> Program:
    return Program.open(PIE)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Fdata:
    path = tmp_path_factory.mktemp("stale") / "fdata"
    convert(ConvertOptions((RECORDING,), PIE, (output("fdata", path),)))
    return fdata_text.read(path)


def hottest(profile: Fdata) -> int:
    """The function with most rows of its own, by its name's number."""
    assert profile.branches is not None
    own = profile.branches.from_name == profile.branches.to_name
    return int(np.bincount(profile.branches.from_name[own]).argmax())


def moved(profile: Fdata, change: Callable[[U64], U64], name: int | None = None) -> Fdata:
    """The profile with other offsets in a function, its hottest one; entries stay."""
    b, name = profile.branches, hottest(profile) if name is None else name
    assert b is not None

    def column(offset: U64, owner: U64) -> U64:
        return np.where((owner == name) & (offset > 0), change(offset), offset)

    branches = replace(
        b,
        from_offset=column(b.from_offset, b.from_name),
        to_offset=column(b.to_offset, b.to_name),
    )
    return replace(profile, branches=branches)


def behind(profile: Fdata, by: int) -> Callable[[U64], U64]:
    """What lies in the second half of the function was so many bytes further back or on."""
    assert profile.branches is not None
    own = profile.branches.from_offset[profile.branches.from_name == hottest(profile)]
    middle = int(np.median(own))
    return lambda offset: np.where(offset > middle, offset + np.uint64(by % 2**64), offset)


def test_fresh_fdata_has_a_place_for_all(fresh: Fdata, program: Program) -> None:
    found = stale_counts(fresh, program)
    assert len(found.partial) == 0
    assert found.counts.tallies["branches_in_image/stale"] == 0
    branches = found.counts.branches()
    assert fresh.branches is not None
    runs = found.counts.runs()
    assert int(branches.count.sum() + runs.count.sum()) == int(fresh.branches.count.sum())


@pytest.mark.parametrize("by", [7, 40, 12, -3])
def test_rows_are_found_where_their_function_has_shifted(
    fresh: Fdata, program: Program, by: int
) -> None:
    old = moved(fresh, behind(fresh, by))
    found, truth = (stale_counts(each, program).counts.branches() for each in (old, fresh))
    right = dict(zip(zip(truth.from_.tolist(), truth.to.tolist(), strict=True),
                     truth.count.tolist(), strict=True))  # fmt: skip
    places = zip(found.from_.tolist(), found.to.tolist(), strict=True)
    kept = sum(right.get(place, 0) for place in places)
    # Indirect jumps that lead over the change may have a place where they no longer lead.
    assert kept > 0.65 * sum(right.values())


@pytest.mark.parametrize("by", [7, -3])
def test_direct_branches_over_a_change_are_found_forwards_and_back(
    fresh: Fdata, program: Program, by: int
) -> None:
    """`walk` has branches down and up across its middle, a call of itself, and no indirect jump."""
    change = np.uint64(by % 2**64)
    old = moved(
        fresh,
        lambda offset: np.where(offset > 0x50, offset + change, offset),
        fresh.names.index("walk/1"),
    )
    found, truth = (stale_counts(each, program).counts.branches() for each in (old, fresh))
    assert found.from_.tolist() == truth.from_.tolist()
    assert found.to.tolist() == truth.to.tolist()
    assert found.count.tolist() == truth.count.tolist()


def test_a_flow_tells_what_was_lost(fresh: Fdata, program: Program, tmp_path: Path) -> None:
    """Half of a function's rows lie where no shift that they have in common leads back."""
    assert fresh.branches is not None
    b, name = fresh.branches, hottest(fresh)
    own = np.flatnonzero((b.from_name == name) & (b.to_name == name))[::2]
    offset = b.from_offset.copy()
    offset[own] += 0x100000 + 977 * np.arange(len(own), dtype=np.uint64)
    path = tmp_path / "old"
    fdata_text.write(replace(fresh, branches=replace(b, from_offset=offset)), path)
    exact = exact_edges_of(EXACT, program)
    alone = replay(stale_counts(fdata_text.read(path), program).counts, program)
    done = read(ConvertOptions((path,), PIE, infer=True)).flow
    before, after = (measure(flow, exact, program) for flow in (alone, done))
    assert after.conditional.overlap > before.conditional.overlap + 0.05
    assert after.blocks.overlap > before.blocks.overlap + 0.2


def test_fdata_of_an_earlier_build_becomes_fdata_of_this_one(
    fresh: Fdata, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    fdata_text.write(moved(fresh, behind(fresh, 7)), old)
    assert main(["convert", str(old), "--binary", str(PIE), "--infer", "--fdata", str(new)]) == 0
    assert "counts are those of an earlier build" in capsys.readouterr().err
    assert len(fdata_text.read(new).names) >= len(fresh.names) - 2
    done = convert(ConvertOptions((old,), PIE, infer=True))
    check(done.tallies, steps())
    assert done.tallies["entries_read"] > done.tallies["entries_in_image"] > 0


def test_what_holds_no_branches_is_refused(fresh: Fdata, tmp_path: Path) -> None:
    none, path = np.zeros(0), tmp_path / "old"
    columns = [none.astype(np.uint8), none.astype(np.int32), *[none.astype(np.uint64)] * 2]
    fdata_text.write(Fdata((), samples=FdataSamples(*columns)), path)
    with pytest.raises(EmptyProfileError, match="no branches"):
        convert(ConvertOptions((path,), PIE, infer=True))
    fdata_text.write(fresh, path)
    for inputs, binary in (((path, path), PIE), ((path,), None)):
        with pytest.raises(InputError, match="one file, for one binary"):
            read(ConvertOptions(inputs, binary, infer=True))


def test_branches_from_outside_alone_have_their_place(program: Program) -> None:
    numbers = {"from_offset": 0, "to_offset": 0, "mispredicted": 0, "count": 5}
    columns = {name: np.array([value], np.uint64) for name, value in numbers.items()}
    kinds = np.array([0], np.uint8), np.array([1], np.uint8)
    names = np.array([0], np.int32), np.array([1], np.int32)
    branches = FdataBranches(
        from_is_symbol=kinds[0], from_name=names[0], to_is_symbol=kinds[1], to_name=names[1],
        **columns,
    )  # fmt: skip
    found = stale_counts(Fdata(("[unknown]", "main"), branches), program)
    assert found.counts.count.tolist() == [5]
    assert len(found.partial) == 0
