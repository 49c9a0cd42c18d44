"""Counts in a file: there and back, and what is no such file."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, BranchCounts, aggregate
from lbr2pgo.profiles.counts.saved_counts import write
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.sources.base import Addresses, CountSource, Sniff
from lbr2pgo.sources.saved_counts import FORMAT, SavedCounts
from lbr2pgo.support.errors import InputError

COLUMNS = ("from_", "to", "end", "known", "count", "mispredicted", "prediction_unknown")
ID = "aabbccdd"


def example(build_id: str | None = ID) -> BranchCounts:
    u = np.uint64
    return aggregate(
        np.array([0x10, 0xFFFFFFFF81000000], dtype=u), np.array([0x20, 0x30], dtype=u),
        np.array([0x28, 0], dtype=u), np.array([15, BRANCH | FROM | TO], dtype=np.uint8),
        np.array([5, 2**62], dtype=u), np.array([1, 2], dtype=u), np.array([3, 0], dtype=u),
        build_id=build_id, tallies={"samples_read": 7, "samples_selected/other_event": 2},
    )  # fmt: skip


def layout(build_id: str | None = ID) -> ImageLayout:
    return ImageLayout("/bin/x", build_id, "x86-64", True, ())


def saved(counts: BranchCounts) -> bytes:
    stream = io.BytesIO()
    write(counts, stream)
    return stream.getvalue()


def assert_equal(a: BranchCounts, b: BranchCounts) -> None:
    for name in COLUMNS:
        ours, theirs = getattr(a, name), getattr(b, name)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs), name
    assert (a.build_id, dict(a.tallies)) == (b.build_id, dict(b.tallies))


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[bytes], SavedCounts]:
    def make(raw: bytes) -> SavedCounts:
        path = tmp_path / "c.npz"
        path.write_bytes(raw)
        return SavedCounts(path)

    return make


@pytest.mark.parametrize("build_id", [ID, None])
def test_there_and_back(opened: Callable[[bytes], SavedCounts], build_id: str | None) -> None:
    source = opened(saved(example(build_id)))
    assert_equal(source.counts(layout(build_id)), example(build_id))
    assert isinstance(source, CountSource)
    assert source.info.addresses is Addresses.IMAGE
    assert source.health() == {}


word = st.integers(0, 2**64 - 1)


amount = st.integers(0, 2**56)


@given(st.lists(st.tuples(word, word, word, st.integers(0, 63), amount, amount), max_size=64))
def test_any_counts_come_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, ...]]
) -> None:
    columns = [np.array([row[i] for row in rows], dtype=np.uint64) for i in range(6)]
    columns[3] = columns[3].astype(np.uint8)  # type: ignore[assignment]
    counts = aggregate(*columns)  # type: ignore[arg-type]
    path = tmp_path_factory.getbasetemp() / "c.npz"
    write(counts, path)
    assert_equal(SavedCounts(path).counts(layout(None)), counts)


def test_counts_of_another_build_are_refused(opened: Callable[[bytes], SavedCounts]) -> None:
    source = opened(saved(example()))
    with pytest.raises(InputError, match="another build"):
        source.counts(layout("11"))
    assert source.counts(layout(None)).build_id == ID


def rewritten(change: Callable[[dict[str, bytes]], None]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(saved(example()))) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in files.items():
            archive.writestr(name, raw)
    return stream.getvalue()


def npy(array: object) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def header(**changes: object) -> bytes:
    fields = {"version": 2, "build_id": ID, "tallies": {}} | changes
    return npy(np.frombuffer(json.dumps(fields).encode(), dtype=np.uint8))


@pytest.mark.parametrize(
    ("name", "raw", "why"),
    [
        ("to", None, "to is missing"),
        ("lbr2pgo_counts", None, "lbr2pgo_counts is missing"),
        ("to", npy(np.zeros(3, np.uint64)), "differ in length"),
        ("to", npy(np.zeros(2, np.int32)), "array of int32"),
        ("to", npy(np.zeros((2, 2), np.uint64)), "2 dimensions"),
        ("to", npy(np.array([{}, {}], dtype=object)), "array of object"),
        ("to", npy(np.zeros(2, np.uint64))[:-1], "cut off"),
        ("to", npy(np.zeros(2, np.uint64)).replace(b"(2,)", b"(9,)"), "cut off"),
        ("to", npy(np.zeros(2, np.uint64)).replace(b"(2,)", b"(2, "), "header can't be read"),
        ("to", b"rubbish", "to"),
        ("to", npy(np.zeros(1 << 22, np.uint64)), "bytes would become"),
        ("lbr2pgo_counts", npy(np.frombuffer(b"{nothing", np.uint8)), "header can't be read"),
        ("lbr2pgo_counts", npy(np.frombuffer(b"[" * 100_000, np.uint8)), "header can't be read"),
        ("lbr2pgo_counts", npy(np.frombuffer(b"[]", np.uint8)), "header can't be read"),
        ("lbr2pgo_counts", header(tallies={"a": "b"}), "something else"),
        ("lbr2pgo_counts", header(tallies={"a": -1}), "something else"),
        ("lbr2pgo_counts", header(tallies={"a": 1 << 64}), "something else"),
        ("lbr2pgo_counts", header(build_id=5), "something else"),
        ("lbr2pgo_counts", header(version=3), "version 3"),
        (
            "lbr2pgo_counts",
            header(tallies={"branches_read": 5, "branches_in_image": 5}),
            "not those of its counts",
        ),
    ],
)
def test_damage_is_an_input_error(
    opened: Callable[[bytes], SavedCounts], name: str, raw: bytes | None, why: str
) -> None:
    def change(files: dict[str, bytes]) -> None:
        if raw is None:
            del files[f"{name}.npy"]
        else:
            files[f"{name}.npy"] = raw

    with pytest.raises(InputError, match=why):
        opened(rewritten(change))


def test_columns_that_hardly_vary_are_no_damage(tmp_path: Path) -> None:
    n = 1 << 20
    address = np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    columns = [address, address, address, np.full(n, 15, np.uint8), np.ones(n, np.uint64)]
    counts = aggregate(*columns, np.zeros(n, np.uint64))
    write(counts, tmp_path / "c.npz")
    assert len(SavedCounts(tmp_path / "c.npz").counts(layout())) == n


def test_every_cut_off_file_is_an_input_error(opened: Callable[[bytes], SavedCounts]) -> None:
    raw = saved(example())
    for size in range(0, len(raw) - 1, 7):
        with pytest.raises(InputError):
            opened(raw[:size])


def test_every_flipped_byte_is_an_input_error_or_harmless(
    opened: Callable[[bytes], SavedCounts],
) -> None:
    raw = saved(example())
    for i in range(0, len(raw), 3):
        try:
            counts = opened(raw[:i] + bytes([raw[i] ^ 0xFF]) + raw[i + 1 :]).counts(layout())
        except InputError:
            continue
        assert_equal(counts, example())


def test_files_of_version_1_know_predictions_if_any_was_wrong(
    opened: Callable[[bytes], SavedCounts],
) -> None:
    def older(mispredicted: list[int]) -> BranchCounts:
        def change(files: dict[str, bytes]) -> None:
            del files["prediction_unknown.npy"]
            files["lbr2pgo_counts.npy"] = header(version=1)
            files["mispredicted.npy"] = npy(np.array(mispredicted, np.uint64))

        return opened(rewritten(change)).counts(layout())

    assert older([1, 0]).prediction_unknown.tolist() == [0, 0]
    assert older([0, 0]).prediction_unknown.tolist() == [5, 2**62]


def test_sniffing(tmp_path: Path) -> None:
    raw = saved(example())
    assert FORMAT.sniff(raw) is Sniff.YES
    for size in (0, 2, 4, 20, 30, 40, 47):
        assert FORMAT.sniff(raw[:size]) is Sniff.MORE
    assert FORMAT.sniff(raw[:48]) is Sniff.YES
    np.savez(tmp_path / "o.npz", other=np.zeros(1))
    assert FORMAT.sniff((tmp_path / "o.npz").read_bytes()) is Sniff.NO
    for other in (b"PERFILE2\0\0", b"T 4b196f 4b19e0 4b19ef 2\n", b"P", b"PK\x05\x06"):
        assert FORMAT.sniff(other) is (Sniff.MORE if other == b"P" else Sniff.NO)


def test_rows_that_say_the_same_add_up(opened: Callable[[bytes], SavedCounts]) -> None:
    def change(files: dict[str, bytes]) -> None:
        for name in COLUMNS:
            dtype = np.uint8 if name == "known" else np.uint64
            value = {"known": TO | END, "count": 3}.get(name, 0x20)
            files[f"{name}.npy"] = npy(np.full(2, value, dtype))

    counts = opened(rewritten(change)).counts(layout())
    assert (len(counts), int(counts.count[0]), int(counts.from_[0])) == (1, 6, 0)
