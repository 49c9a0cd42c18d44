"""From samples to `InstructionCounts`: where they interrupted the program, not what led there."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces, rows_by
from lbr2pgo.counting.count import CountingOptions, Progress, Reading
from lbr2pgo.counting.find_image import ImageMatch
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.model.instruction_counts import InstructionCounts, aggregate, merge
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.sources.base import InstructionSource, Source, StackSource, SymbolResolver
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.errors import InputError


@dataclass(frozen=True, slots=True)
class CountedInstructions:
    """What was counted, and how the binary was recognised."""

    counts: InstructionCounts
    match: ImageMatch | None
    """None for inputs that were counts already."""


def count_instructions(
    source: Source,
    layout: ImageLayout,
    options: CountingOptions | None = None,
    resolve: SymbolResolver | None = None,
    progress: Progress | None = None,
) -> CountedInstructions:
    """Samples of one image by their instruction.

    Raises InputError for a recording of another binary, and for sources that hold no samples.
    """
    if isinstance(source, StackSource):
        options = replace(options or CountingOptions(), by_instruction=True)
        return _count_samples(source, layout, options, resolve, progress)
    if isinstance(source, InstructionSource):
        return CountedInstructions(source.instruction_counts(layout), None)
    raise InputError(
        "holds branches, and no samples of instructions",
        where=source.info.path,
        cure="Leave out --no-lbr.",
    )


def _count_samples(
    source: StackSource,
    layout: ImageLayout,
    options: CountingOptions,
    resolve: SymbolResolver | None,
    progress: Progress | None,
) -> CountedInstructions:
    reading = Reading(source, layout, options)
    parts = [_none()]
    with closing(reading.batches(resolve, progress)) as batches:
        for batch, spaces, _ in batches:
            parts = [merge([*parts, _of_batch(batch, spaces, reading.spaces)])]
    (counts,) = parts
    tallies = reading.tally.as_instruction_tally(counts.total)
    return CountedInstructions(
        replace(counts, build_id=layout.build_id, tallies=tallies), reading.match
    )


def _none() -> InstructionCounts:
    return aggregate(*np.zeros((2, 0), np.uint64))


def _of_batch(batch: BranchStacks, spaces: I64, mapping: AddressSpaces) -> InstructionCounts:
    parts = [_none()]
    for space, rows in rows_by(spaces):
        if space >= 0:
            image, piece = mapping.to_image(space, batch.ip[rows])
            inside = piece < len(mapping.pieces[space])
            parts.append(aggregate(image[inside], batch.weight[rows][inside]))
    return merge(parts)
