"""Streams of the software LBR as one perf.data file."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lbr2pgo.model.address_space_events import Mmap, SpaceEvent
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS, BranchStacks
from lbr2pgo.model.perf_abi import DATA_ACCESSES, FETCH_MISSES, SIMULATED_CPU
from lbr2pgo.recorders.emulation import access_period, keeps_halves, miss_period
from lbr2pgo.recorders.exact_streams import StreamImages
from lbr2pgo.recorders.guest import Guest
from lbr2pgo.recorders.options import KIND_FILTERS, RecordOptions
from lbr2pgo.recorders.perf_data_writer import (
    MarkedChains,
    PerfDataWriter,
    RecordedEvent,
    RecordingFacts,
)
from lbr2pgo.recorders.plugin_stream import RecordKind, Stream
from lbr2pgo.recorders.stream_samples import sample_batches

_SAMPLE_SIZE_MAX = 64 * 24 + 128 * 8 + 96  # bytes, of perf's record and of ours
_EVENT = "taken-branches:u"


def write_streams(
    path: Path,
    options: RecordOptions,
    guest: Guest,
    streams: Sequence[Stream],
    room: int,
    period: int,
) -> int:
    """Write the streams, sampled with one period, as one perf.data; gives the number of samples.

    Batches need little of the room on the disk, given in bytes: a stream shrinks as it is read.
    """
    most = max(1, min(room // (4 * _SAMPLE_SIZE_MAX), 1 << 12))
    branches = branch_sample_type(options, kernel=keeps_halves(options, guest))
    recorded = {RecordKind.SAMPLE: RecordedEvent(_EVENT, period, branches)}
    if options.front_end is not None:
        recorded[RecordKind.MISS] = RecordedEvent(FETCH_MISSES, miss_period(options), branches)
    if options.data:
        recorded[RecordKind.ACCESS] = RecordedEvent(DATA_ACCESSES, access_period(options), branches)
    numbers = {kind: number for number, kind in enumerate(recorded)}
    events = [happening for stream in streams for happening in stream.events]
    images = StreamImages()
    samples = 0
    facts = _facts(options, guest)
    has_chains = options.emulates_chains or options.call_stack
    with PerfDataWriter(
        path, [*recorded.values()], facts, with_callchain=has_chains, with_accesses=options.data
    ) as writer:
        for happening in sorted(events, key=lambda e: e.time):
            writer.event(_with_build_id(happening, images))
        for stream in streams:
            for batch in sample_batches(stream, most, numbers):
                writer.samples(batch, callchains=_call_chains(batch) if has_chains else None)
                samples += int((batch.event == numbers[RecordKind.SAMPLE]).sum())
            if stream.lost_samples:
                start = stream.start
                writer.lost(stream.lost_samples, pid=start.pid, tid=start.tid, time=start.time)
    return samples


def _call_chains(batch: BranchStacks) -> MarkedChains:
    """In call-stack mode the interrupted instruction alone: perf puts the calls in behind it.

    perf: tools/perf/util/machine.c, resolve_lbr_callchain_sample.
    """
    assert batch.chains is not None
    return MarkedChains.of_user(batch.chains)


def _with_build_id(event: SpaceEvent, images: StreamImages) -> SpaceEvent:
    if not isinstance(event, Mmap):
        return event
    return event._replace(build_id=images.build_ids[images.index(event.path)])


def _facts(options: RecordOptions, guest: Guest) -> RecordingFacts:
    system = os.uname()
    asked = ("--call-graph",) if options.call_graph else ()
    try:
        own_version = version("lbr2pgo")
    except PackageNotFoundError:
        own_version = "unknown"
    return RecordingFacts(
        hostname=system.nodename,
        os_release=system.release,
        version=f"lbr2pgo {own_version}",
        machine=guest.architecture.uname[0],
        cpu_description=f"simulated: the software LBR of lbr2pgo on {_emulator_version(guest)}",
        cpu_id=SIMULATED_CPU,
        cpus=os.cpu_count(),
        command=("lbr2pgo", "record", "--emulate", *asked, "--", *options.command),
    )


def _emulator_version(guest: Guest) -> str:
    done = subprocess.run(
        [guest.emulator, "--version"], capture_output=True, text=True, check=False
    )
    found = re.search(r"version (\S+)", done.stdout)
    return f"{Path(guest.emulator).name} {found.group(1) if found else '(unknown version)'}"


def branch_sample_type(options: RecordOptions, *, kernel: bool = False) -> int:
    """PERF_SAMPLE_BRANCH_* bits that describe the recording; `kernel`: it holds system calls."""
    names = {"user", "save_type", "priv"}
    names |= {name for name in options.filters if name in KIND_FILTERS}
    if options.call_stack:  # as perf: tools/perf/util/evsel.c, __evsel__config_callchain
        names |= {"call_stack", "no_flags", "no_cycles"}
    elif not set(options.filters) & set(KIND_FILTERS):
        names.add("any")
    if not options.cycles:
        names.add("no_cycles")
    if kernel:
        names.add("kernel")
    return sum(1 << BRANCH_FILTER_BITS[name] for name in names)
