"""From samples to `InstructionCounts`: where they interrupted the program, not what led there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.chosen_samples import CountingOptions
from lbr2pgo.counting.count import Counted
from lbr2pgo.counting.place import ImageFacts
from lbr2pgo.counting.sample_reading import SampleReading
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.model.instruction_counts import InstructionCounts, aggregate
from lbr2pgo.native.key_table import KeyTable
from lbr2pgo.sources.base import EventInfo, InstructionSource, Source, StackSource
from lbr2pgo.support import headway
from lbr2pgo.support.addresses import are_of_kernel, placed_addresses, runtime_addresses
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.headway import Progress


def count_instructions(
    source: Source,
    image: ImageFacts,
    options: CountingOptions | None = None,
    progress: Progress | None = None,
) -> Counted[InstructionCounts]:
    """Samples of one image by their instruction.

    Raises InputError for a recording of another binary, and for sources that hold no samples.
    """
    if isinstance(source, StackSource):
        return _count_samples(source, image, options or CountingOptions(), progress)
    if isinstance(source, InstructionSource):
        with headway.heard_by(progress):
            return Counted(source.instruction_counts(image.layout), None)
    raise InputError(
        "holds branches, and no samples of instructions",
        where=source.info.path,
        cure="Leave out --no-lbr.",
    )


def _count_samples(
    source: StackSource, image: ImageFacts, options: CountingOptions, progress: Progress | None
) -> Counted[InstructionCounts]:
    options = replace(options, event=options.event or _one_of_a_trace(source.info.events))
    reading, table = SampleReading(source, image, options, by_instruction=True), KeyTable()
    levels = [event.precise_ip for event in source.info.events]
    is_precise, precise = np.array([*(bool(level) for level in levels), False]), 0
    with closing(reading.batches(progress)) as batches:
        for batch, spaces, _ in batches:
            _add(table, batch, spaces)
            precise += int(batch.weight[(spaces >= 0) & is_precise[batch.event]].sum())
    counts, in_kernel = _counts(table, reading.spaces)
    tallies = reading.tally.as_instruction_tally(counts.total, in_kernel)
    if any(level is not None for level in levels):
        tallies["instructions_precise"] = precise
    return Counted(replace(counts, build_id=image.layout.build_id, tallies=tallies), reading.match)


def _one_of_a_trace(events: Sequence[EventInfo]) -> str | None:
    """The event that has each record of a trace once; None for all events.

    perf inject makes several samples of a record of Arm SPE, one for each event that it fits
    (tools/perf/util/arm-spe.c, arm_spe_synth_events).
    """
    made = [event.name.split(":")[0] for event in events if event.records_single_branches]
    return "instructions" if "instructions" in made else None


def _add(table: KeyTable, batch: BranchStacks, spaces: I64) -> None:
    """Count by run-time address and space, whose number is 1 higher in keys."""
    rows = spaces >= 0
    keys, sums = np.zeros((rows.sum(), 4), np.uint64), np.zeros((rows.sum(), 3), np.uint64)
    keys[:, 0], keys[:, 3] = batch.ip[rows], spaces[rows] + 1
    sums[:, 0] = batch.weight[rows]
    table.add(keys, sums)


def _counts(table: KeyTable, mapping: AddressSpaces) -> tuple[InstructionCounts, int]:
    """Samples of the image, and how many are of the kernel, if that is another one."""
    keys, sums = table.rows()
    spaces = keys[:, 3].astype(np.int64) - 1
    image, inside = mapping.to_image(spaces, runtime_addresses(keys[:, 0]))
    count = sums[:, 0] * inside
    in_kernel = (count == 0) & are_of_kernel(keys[:, 0])
    return aggregate(placed_addresses(image), count), int(sums[in_kernel, 0].sum())
