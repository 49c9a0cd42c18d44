"""Stacks that perf made of traces: `perf inject --itrace=…l` of Intel PT and Arm ETM."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from builders import perf_data as build
from builders.outputs import outputs
from builders.recordings import STATIC, STATIC_RECORDING

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.sources.perf_data.reader import PerfData

KIND = build.IDENTIFIER | build.IP | build.TID | build.TIME | build.PERIOD
AUXTRACE_INFO, AUXTRACE, ITRACE_START, AUX = 70, 71, 12, 11


def traced(path: Path, name: str, *, hw_index: int, data: bytes = b"") -> Path:
    """A recording as inject leaves it: the trace's event, and one made of it with stacks.

    What it asks the kernel for is no branch filter; it only states the hardware index, which
    perf then writes (perf: util/intel-pt.c intel_pt_synth_events; util/cs-etm.c).
    """
    trace = build.Event(KIND, 0, ids=(1,), type=8, name=name)
    made = build.Event(KIND | build.BRANCH_STACK, hw_index, ids=(2,), name="instructions:u")
    (batch,) = PerfData(STATIC_RECORDING).batches()
    rows, bounds = batch.entries.tolist(), batch.offsets.tolist()
    samples = b"".join(
        build.Sample(
            tuple((a, b, flags & 0xF00000) for a, b, flags in rows[bounds[i] : bounds[i + 1]]),
            ip=int(batch.ip[i]), pid=10, tid=10, time=100 + i, sample_id=2,
        ).encode(made)
        for i in range(len(batch))
    )  # fmt: skip
    space = build.mmap2(10, 0x202000, 0xA0000, str(STATIC), trace.trailer(10, 10, 1, 1))
    start = build.record(ITRACE_START, 0, struct.pack("<ii", 10, 10) + trace.trailer(10, 10, 2, 1))
    aux = build.record(AUX, 0, struct.pack("<QQQ", 0, 4096, 0) + trace.trailer(10, 10, 3, 1))
    info = build.record(AUXTRACE_INFO, 0, struct.pack("<IIQQ", 1, 0, 7, 7))
    blob = build.record(AUXTRACE, 0, struct.pack("<QQQIIII", len(data), 0, 0, 0, 10, 0, 0)) + data
    events = [trace, made]
    features = {12: build.event_desc(events)}
    records = info + space + start + aux + (blob if data else b"") + samples
    path.write_bytes(build.file_form(events, records, features))
    return path


@pytest.mark.parametrize("name", ["intel_pt//u", "cs_etm/@tmc_etr0/u"])
@pytest.mark.parametrize("hw_index", [0, build.HW_INDEX])
@pytest.mark.parametrize(
    "data", [b"", b"\x09\0\0\0\2\0\x30\0" * 64], ids=["injected", "with-trace"]
)
def test_they_count_like_those_of_hardware(
    tmp_path: Path, name: str, hw_index: int, data: bytes
) -> None:
    path = traced(tmp_path / "perf.data", name, hw_index=hw_index, data=data)
    profiles = []
    for recording in (path, STATIC_RECORDING):
        out = tmp_path / "out.prof"
        done = convert(ConvertOptions((recording,), STATIC, outputs=outputs(llvm=out)))
        profiles.append((out.read_bytes(), done.counts))
    (text, counts), (expected_text, expected) = profiles
    assert text == expected_text
    for column in ("from_", "to", "end", "count"):
        assert np.array_equal(getattr(counts, column), getattr(expected, column))
    assert counts.mispredicted.sum() == 0
