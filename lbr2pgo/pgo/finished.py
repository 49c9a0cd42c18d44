"""What a loop comes to: the builds that it left, and what to keep of each."""

from __future__ import annotations

import os
from pathlib import Path

from lbr2pgo.pgo.loop_flags import LoopFlags
from lbr2pgo.pgo.post_link import kept_for_bolt
from lbr2pgo.pgo.reach import ByVariables
from lbr2pgo.pgo.trainer import Trainer
from lbr2pgo.pgo.verdict import Built
from lbr2pgo.pgo.workplace import Workplace, need
from lbr2pgo.profiles.bolt.tool import find_bolt
from lbr2pgo.support.counted import counted

_LAY_OUT_AGAIN = "Lay out anew what changed since: blocks go by numbers that change with the code."


def final_build(flags: LoopFlags) -> Path:
    """The build that is left in the binary's place."""
    work, options = flags.work, flags.options
    made = ((options.propeller, work.propelled), (options.startup, work.ordered))
    return next((build for asked, build in made if asked and build.exists()), work.newest)


def finished_builds(flags: LoopFlags, way: ByVariables, trainer: Trainer) -> list[Built]:
    """The builds that there are, the plain one first; flags reached them by this way.

    Raises InputError where there is no plain one.
    """
    work, binary, final = flags.work, flags.options.binary, final_build(flags)
    builds = [Built(need(work.plain, "build"), way.advice(flags.base, os.environ))]
    if work.rebuilt.exists():
        place = binary if final == work.rebuilt else work.rebuilt
        builds.append(Built(place, way.advice(flags.profile, os.environ), (flags.profile_file,)))
    if final == work.propelled:
        advice = (*way.advice(flags.layout, os.environ), _LAY_OUT_AGAIN)
        builds.append(Built(binary, advice, (*builds[-1].reads, work.clusters, work.order)))
    if final == work.ordered:
        advice = (_start_said(work, trainer), *way.advice(flags.order, os.environ))
        builds.append(Built(binary, advice, (*builds[-1].reads, work.start_order)))
    tool = find_bolt() if flags.options.bolt else None
    if tool is not None and work.laid_out.exists():
        is_stored = flags.options.bolt_profile is not None
        kept = kept_for_bolt(flags.layout_profile, infers=is_stored)
        keep = (*way.advice(flags.compiled, os.environ), kept)
        layout = tuple(flags.bolt_command(tool))
        builds.append(Built(work.laid_out, keep, builds[-1].reads, layout))
    return builds


def _start_said(work: Workplace, trainer: Trainer) -> str:
    """What the order is for."""
    before = trainer.pages_of_start(work.start_recording, work.newest)
    after = trainer.pages_of_start(work.ordered_recording, work.ordered)
    return f"Its start touches {counted(after, 'page')} of its code, {before:,} without order."
