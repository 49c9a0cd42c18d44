"""Makes a recording longer by repeating its samples."""

from __future__ import annotations

from pathlib import Path

from lbr2pgo.recorders.perf_data_writer import PerfDataWriter, RecordedEvent
from lbr2pgo.sources.perf_data.reader import PerfData


def tile(recording: Path, times: int, out: Path) -> None:
    """Write `recording` (one event) with every sample `times` times, one pass after the other."""
    source = PerfData(recording)
    (event,) = source.info.events
    described = RecordedEvent(event.name, 1, branch_sample_type=event.branch_sample_type or 0)
    with PerfDataWriter(out, [described]) as writer:
        for change in source.space_events():
            writer.event(change)
        for path, build_id in source.info.build_ids.items():
            writer.build_id(path, build_id)
        for _ in range(times):
            for batch in source.batches():
                writer.samples(batch)
