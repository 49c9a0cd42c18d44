"""One pass over the samples of a recording: each batch made ready to be counted for an image."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from lbr2pgo.counting.bias import Correction, Ends, Weigher, correction, ends_of
from lbr2pgo.counting.chosen_samples import CountingOptions
from lbr2pgo.counting.mapped_files import MappedFiles
from lbr2pgo.counting.place import ImageFacts, place_images
from lbr2pgo.counting.selected_entries import EntrySelection
from lbr2pgo.counting.selected_samples import SampleSelection, SampleTally
from lbr2pgo.counting.system_calls import are_recorded_behind, at_their_instructions
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.model.space_event_log import of_code
from lbr2pgo.sources.base import SizedSource, StackSource
from lbr2pgo.support.arrays import I64, U8
from lbr2pgo.support.headway import Progress
from lbr2pgo.support.read_ahead import read_ahead

Selected = tuple[BranchStacks, I64, U8]
"""A batch, with its samples' spaces (negative: not to be counted) and `StackKind`s."""
Onlooker = Callable[[BranchStacks, I64, U8], object]
"""Is shown each batch that is selected."""


class SampleReading:
    """One pass over those samples of a source that count for an image."""

    def __init__(
        self,
        source: StackSource,
        image: ImageFacts,
        options: CountingOptions | None = None,
        known: Correction | None = None,
        *,
        by_instruction: bool = False,
        earlier: SampleReading | None = None,
    ) -> None:
        """Raises InputError if the recording is of another binary.

        `known` is what an earlier reading found to be done against a bias. `by_instruction`
        chooses samples that say where they were interrupted, with or without a branch stack.
        What does not depend on it, an `earlier` reading of the same source has found.
        """
        options = options or CountingOptions()
        self._earlier = earlier
        if earlier is None:
            self.match, self.beside, self.spaces = place_images(source, image, options.build_id)
        else:
            self.match, self.beside, self.spaces = earlier.match, earlier.beside, earlier.spaces
        self.tally = SampleTally()
        self.source, self.image = source, image
        self._samples = SampleSelection(source, image, options, by_instruction=by_instruction)
        self.onlookers: list[Onlooker] = []
        self._known, done = known, known or Correction()
        self._entries = EntrySelection(image, options, done)
        self._weigher = Weigher(done, self.spaces)
        looks_for_bias = options.corrects_bias and not by_instruction and known is None
        self._ends: list[Ends] | None = [] if looks_for_bias else None
        self._moves_calls = not image.believes_entries and are_recorded_behind(
            source.info, image.layout
        )

    @cached_property
    def files(self) -> MappedFiles:
        """What processes mapped, whether it is the image or not."""
        if self._earlier is not None:
            return self._earlier.files
        return MappedFiles(of_code(self.source.space_events()))

    def batches(self, progress: Progress | None = None) -> Generator[Selected, None, None]:
        """Each batch, with its samples' spaces (negative: not to be counted) and `StackKind`s."""
        for selected in in_one_pass([self], progress):
            yield selected[0]

    def select(self, batch: BranchStacks) -> Selected:
        """A batch of the source for this image, in its order."""
        self.tally.expect(batch, self.source.info.path)
        if self._moves_calls:
            batch = at_their_instructions(batch)
        spaces, kinds = self._samples.apply(batch, self.spaces, self.tally)
        kept = self._entries.believed(batch, spaces, self.spaces)
        if self._weigher.weighs:
            kept = replace(kept, weight=self._weigher.weighed(kept, spaces, kinds))
            self.tally.expect(kept, self.source.info.path)
            self.tally.weigh(kept.weight[spaces >= 0])
            spaces = np.where(kept.weight > 0, spaces, -1)
        self.tally.count_entries(batch, kept, spaces)
        if self._ends is not None:
            self._ends.append(ends_of(kept, spaces, kinds, self.spaces))
        for look in self.onlookers:
            look(kept, spaces, kinds)
        return kept, spaces, kinds

    @property
    def corrects(self) -> bool:
        """Whether something is done against a bias."""
        return self._known is not None and self._known.is_any

    def correction(self) -> Correction | None:
        """What all samples, read before, want done against a bias; None where nobody asks."""
        return self._known if self._ends is None else correction(iter(self._ends))


def in_one_pass(
    readings: Sequence[SampleReading], progress: Progress | None
) -> Generator[tuple[Selected, ...], None, None]:
    """Each batch of the one source that all are of, for each of them."""
    source, resolve = readings[0].source, readings[0].image.resolve
    sized = source if isinstance(source, SizedSource) else None
    for batch in read_ahead(source.batches(resolve)):
        yield tuple(reading.select(batch) for reading in readings)
        if progress is not None:
            progress(len(batch), None if sized is None else sized.share_read)
