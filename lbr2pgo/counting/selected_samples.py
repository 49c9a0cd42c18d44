"""Which samples of a batch are counted for an image, and what became of the others."""

from __future__ import annotations

import numpy as np

from lbr2pgo.counting._selection import (
    BESIDE,
    NO_STACK,
    NOT_CHOSEN,
    NOT_MAPPED,
    OTHER_EVENT,
    OTHER_PROCESS,
    READ,
    count_entries,
    select,
)
from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.branch_filters import kinds_of_events
from lbr2pgo.counting.chosen_samples import Chooser, CountingOptions
from lbr2pgo.counting.place import ImageFacts
from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.model.perf_abi import WITHOUT_BRANCHES
from lbr2pgo.model.quirks import LOSSES
from lbr2pgo.native.walk import Reason
from lbr2pgo.sources.base import EventInfo, StackSource
from lbr2pgo.support.arrays import I64, U8, U64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.resembling import did_you_mean
from lbr2pgo.support.sums import LIMIT, TooManyError, exact_sum


@dataclass(slots=True)
class SampleTally:
    """How many samples reached each step, and why the others did not."""

    read: int = 0
    other_event: int = 0
    other_process: int = 0
    not_chosen: int = 0
    no_stack: int = 0
    """Or no address, where samples are counted by their instruction."""
    not_mapped: int = 0
    in_prologue: int = 0
    weighed: int | None = None
    """After weights against bias; None where there are none."""
    branches: int = 0
    dropped: int = 0
    most: int = 0
    """No sum over the samples so far, or over their entries, is larger."""

    def expect(self, batch: BranchStacks, where: str) -> None:
        """Raise TooManyError before sums over a batch could wrap around."""
        longest = int(np.diff(batch.offsets).max(initial=0))
        self.most += exact_sum(batch.weight) * (longest + 1)
        if self.most >= LIMIT:
            raise TooManyError(where)

    def weigh(self, weight: U64) -> None:
        """Count samples with their weights against bias."""
        self.weighed = (self.weighed or 0) + int(weight.sum())

    def count_samples(self, steps: U64, in_prologue: int) -> None:
        """Count what `select` says of a batch, and those that it chose but are left out."""
        self.read += int(steps[READ])
        self.other_event += int(steps[OTHER_EVENT])
        self.other_process += int(steps[OTHER_PROCESS])
        self.not_chosen += int(steps[NOT_CHOSEN])
        self.no_stack += int(steps[NO_STACK])
        self.not_mapped += int(steps[NOT_MAPPED])
        self.in_prologue += in_prologue

    def count_entries(self, batch: BranchStacks, kept: BranchStacks, spaces: I64) -> None:
        """Count the entries of a batch, and those that its stacks lose."""
        branches, dropped = count_entries(kept.weight, batch.offsets, kept.offsets, spaces)
        self.branches += branches
        self.dropped += dropped

    @property
    def selected(self) -> int:
        """Samples that were asked for."""
        return self.read - self.other_event - self.other_process - self.not_chosen

    def _as_selected(self) -> dict[str, int]:
        return {
            "samples_read": self.read,
            "samples_selected/other_event": self.other_event,
            "samples_selected/other_process": self.other_process,
            **({"samples_selected/not_chosen": self.not_chosen} if self.not_chosen else {}),
            "samples_selected": self.selected,
        }

    def as_instruction_tally(self, inside: int, in_kernel: int) -> dict[str, int]:
        """Where samples are counted by their instruction, so many in the image or the kernel."""
        mapped = self.selected - self.no_stack - self.not_mapped
        return {
            **self._as_selected(),
            "instructions_mapped/no_ip": self.no_stack,
            "instructions_mapped/not_mapped": self.not_mapped,
            **waterfall.of_instructions(mapped, inside, in_kernel),
        }

    def as_tally(self, reasons: U64, outside: int) -> dict[str, int]:
        """Where branches are counted, by `Reason`, so many of them outside the image after all."""
        with_stack = self.selected - self.no_stack
        return {
            **self._as_selected(),
            "samples_with_stack/no_stack": self.no_stack,
            "samples_with_stack": with_stack,
            "samples_mapped/not_mapped": self.not_mapped,
            "samples_mapped/in_prologue": self.in_prologue,
            "samples_mapped": with_stack - self.not_mapped - self.in_prologue,
            **({} if self.weighed is None else {"samples_weighed": self.weighed}),
            "branches_read": self.branches,
            "branches_in_image/dropped": self.dropped,
            "branches_in_image/outside": int(reasons[Reason.OUTSIDE]) + outside,
            "branches_in_image": int(reasons[Reason.COUNTED]) - outside,
            **{
                f"{loss.step}/{loss.reason}": int(reasons[Reason[loss.reason.upper()]])
                for loss in LOSSES
            },
        }


class SampleSelection:
    """Which samples of a batch are counted, and what kind of stacks they have."""

    def __init__(
        self,
        source: StackSource,
        image: ImageFacts,
        options: CountingOptions,
        *,
        by_instruction: bool,
    ) -> None:
        events = source.info.events
        wanted = [
            is_wanted(event, options.event)
            and (options.event is not None or event.name not in WITHOUT_BRANCHES)
            for event in events
        ]
        if options.event is not None and not any(wanted):
            there = [event.name for event in events]
            raise InputError(
                f"no event is called {options.event}{did_you_mean(options.event, there)}",
                where=source.info.path,
                cure=f"Recorded were: {', '.join(there) or 'nameless events'}",
            )
        # One more place for samples that don't say their event (index -1).
        roles = [
            1 if is_one else BESIDE if event.name in WITHOUT_BRANCHES else 0
            for is_one, event in zip(wanted, events, strict=True)
        ]
        self._wanted = np.array([*roles, options.event is None], np.uint8)
        self._kinds = kinds_of_events(events, as_llvm=image.believes_entries)
        self._chooser = Chooser(options.choice, source)
        self._skips_leaf = image.skips_leaf if source.info.has_call_chains else None
        self._by_instruction = by_instruction

    def apply(
        self, batch: BranchStacks, mapping: AddressSpaces, tally: SampleTally
    ) -> tuple[I64, U8]:
        """Spaces (n,), negative for samples not to be counted, and kinds of stacks (n,)."""
        own, rest = self._chooser.of_processes(batch), self._chooser.of_the_rest(batch)
        spaces = mapping.spaces_of(batch.pid, batch.time)
        is_skipped = np.zeros(len(batch), np.bool_)
        if self._skips_leaf is not None:
            leaves, _ = mapping.to_image(spaces, batch.ip)
            is_skipped = self._skips_leaf(leaves)
        has_stack = batch.ip != 0 if self._by_instruction else np.diff(batch.offsets) > 0
        steps = select(batch.event, batch.weight, self._wanted, own, rest, has_stack, spaces)
        is_skipped &= spaces >= 0
        tally.count_samples(steps, in_prologue=int(batch.weight[is_skipped].sum()))
        spaces[is_skipped] = -1
        return spaces, self._kinds[batch.event]


def is_wanted(event: EventInfo, name: str | None) -> bool:
    """Whether an event is meant by a name, given with or without its modifiers (`cycles:u`)."""
    return name is None or name in (event.name, event.name.split(":")[0])
