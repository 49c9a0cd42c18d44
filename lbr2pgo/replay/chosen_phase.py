"""Which span of time a phase is that was asked for, found in a reading before all others.

That makes three with what a report looks for, which is planned by counts of the phase alone. To
count and to find phases at once, each slice of time would need a table of traces of its own. This
reading is a tenth of a report's time, less than is saved by the samples that the phase leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from lbr2pgo.counting.activity import ActivityCounter
from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.change_points import phases_of
from lbr2pgo.counting.chosen_samples import refuse_untimed
from lbr2pgo.counting.count import look_together
from lbr2pgo.counting.mapped_files import MappedFiles
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replaying import MakeReplaying, ReadingOptions
from lbr2pgo.sources.base import Source, StackSource
from lbr2pgo.support.addresses import ImageAddress, PlacedAddresses
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.counted import counted
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.headway import Progress

OptionsT = TypeVar("OptionsT", bound=ReadingOptions)


def counter_of(program: Program, spaces: AddressSpaces, files: MappedFiles) -> ActivityCounter:
    """What tells functions of the program apart; of its libraries, whichever are open, the files.

    So phases are the same whatever else is looked at.
    """
    own, _ = program.file_of(ImageAddress(0))
    return ActivityCounter(spaces, files, partial(_functions, own))


def _functions(program: Program, addresses: PlacedAddresses) -> I64:
    regions = program.regions
    region = regions.containing(addresses)
    return np.where(region < 0, -1, np.append(regions.parent, -1)[region])


def with_phase(
    options: OptionsT,
    sources: Sequence[Source],
    program: Program,
    replaying: MakeReplaying,
    progress: Progress | None = None,
) -> OptionsT:
    """The options with the time of the phase that they ask for.

    Raises InputError where the recording has no such phase, or there are several recordings.
    """
    choice = options.counting.choice
    if choice.phase is None:
        return options
    source = _only(sources)
    refuse_untimed(source.info)
    whole = _of_time(options, choice.time)
    reading = replaying(program, whole, sources, ()).reading(source)
    counter = counter_of(program, reading.spaces, reading.files)
    reading.onlookers.append(counter.add)
    look_together([reading], progress)
    activity = counter.result()
    phases = phases_of(activity) if activity is not None else ()
    if not 1 <= choice.phase <= len(phases):
        raise InputError(
            f"there is no phase {choice.phase}: it has {counted(len(phases), 'phase')}",
            where=source.info.path,
            cure="lbr2pgo report --only phases shows them.",
        )
    return _of_time(options, phases[choice.phase - 1].time)


def _of_time(options: OptionsT, time: tuple[int, int | None] | None) -> OptionsT:
    choice = replace(options.counting.choice, time=time, phase=None)
    return replace(options, counting=replace(options.counting, choice=choice))


def _only(sources: Sequence[Source]) -> StackSource:
    """The recording that has phases."""
    if len(sources) != 1:
        raise InputError(
            f"--phase is about one recording, and there are {len(sources)}",
            cure="Give one, or choose by --time.",
        )
    (source,) = sources
    if not isinstance(source, StackSource):
        raise InputError(
            "holds counts, and no samples of which some can be chosen",
            where=source.info.path,
            cure="Give the recording, or leave out --phase.",
        )
    return source
