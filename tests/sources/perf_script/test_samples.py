"""However a file is cut, and however many threads read it, its samples are the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lbr2pgo.sources.perf_script import samples as perf_script_samples
from lbr2pgo.sources.perf_script.reader import PerfScript
from lbr2pgo.sources.perf_script.samples import SymbolAddresses

ONE_LINE_SAMPLES = [
    "sq 7/8 1.500000: cycles: 0x10/0x20/P/-/-/1",
    " 0x30/0x40/M/-/-/22  0x50/0x60/P/-/-/3",  # without a time
    "17",  # how often the next sample was taken
    "",
    "# a remark",
    " 0x10/0x20/P/-/-/1 0x30/broken",
    "no sample",
]
CALL_STACKS = ["sq 7/8 2.500000: cycles: ", "\t        4005dc", "\t        4005f0 main (/bin/x)"]
TEXTS = (
    st.lists(st.sampled_from(ONE_LINE_SAMPLES), max_size=60)
    | st.lists(st.sampled_from(ONE_LINE_SAMPLES + CALL_STACKS), max_size=60)
).map("\n".join)


def samples(path: Path, chunk_size: int) -> tuple[list[object], dict[str, int]]:
    source = PerfScript(path, chunk_size)
    found: list[object] = []
    for batch in source.batches():
        columns = (batch.pid, batch.time, batch.event, batch.ip, batch.weight)
        for i, row in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            entries = batch.entries[batch.offsets[i] : batch.offsets[i + 1]].tolist()
            chain = None
            if batch.chains is not None:
                cuts = batch.chains.offsets
                chain = batch.chains.frames[cuts[i] : cuts[i + 1]].tolist()
            found.append((row, entries, chain))
    return found, {reason: count for reason, count in source.health().items() if count}


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS)
def test_chunks_and_threads_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    path = tmp_path / "text"
    path.write_text(text)
    with monkeypatch.context() as patch:
        patch.setattr(perf_script_samples, "threads", lambda: 1)
        expected = samples(path, 1 << 16)
        assert samples(path, 128) == expected
    assert samples(path, 128) == expected
    assert samples(path, 1 << 16) == expected


def test_a_time_is_handed_on_over_chunks_without_one(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("sq 7/8 1.500000: cycles: 0x10/0x20/P/-/-/1\n" + " 0x30/0x40/P/-/-/1\n" * 40)
    found, _ = samples(path, 128)
    assert {row[1] for row, *_ in found} == {1_500_000_000}  # type: ignore[misc]


def test_reading_may_stop_early(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text(" 0x30/0x40/P/-/-/1\n" * 1000)
    batches = PerfScript(path, 128).batches()
    assert len(next(iter(batches))) > 0
    del batches


NAMES = {1: b"main", 2: b"gone", 3: b"", 4: b"\xff"}
KNOWN = {"main": 0x1000, "\udcff": 0x2000}


class Resolver:
    """Knows some names, and notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, name: str) -> int | None:
        self.asked.append(name)
        return KNOWN.get(name)


def addresses(symbols: SymbolAddresses, *places: tuple[int, int]) -> list[int]:
    hashes, offsets = np.array([places, places[::-1]], np.uint64).transpose(2, 0, 1)
    found = symbols.addresses(hashes, offsets, NAMES)
    assert found.shape == hashes.shape
    return found[0].tolist()


def test_an_address_is_the_symbols_and_the_offset() -> None:
    symbols = SymbolAddresses(Resolver())
    assert addresses(symbols, (1, 4), (4, 0)) == [0x1004, 0x2000]
    assert symbols.lost == 0


def test_what_the_binary_lacks_is_0_and_counted() -> None:
    symbols = SymbolAddresses(Resolver())
    assert addresses(symbols, (2, 4), (3, 4), (1, 0)) == [0, 0, 0x1000]
    assert symbols.lost == 4  # two, twice


def test_each_symbol_is_resolved_once_and_one_without_a_name_never() -> None:
    resolve = Resolver()
    symbols = SymbolAddresses(resolve)
    for _ in range(2):
        addresses(symbols, (1, 0), (2, 0), (3, 0), (1, 8))
    assert sorted(resolve.asked) == ["gone", "main"]
