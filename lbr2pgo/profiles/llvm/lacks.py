"""What is lost for want of a place in the source, or of a pseudo probe: why, and what helps."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from lbr2pgo.model.waterfall import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lbr2pgo.support.arrays import U8, U64


class Lack(IntEnum):
    """Why code has no place, or no probe."""

    NOTHING = 0
    """It has one."""
    PLACE = 1
    """The compiler left none there."""
    PROBES = 2
    """It is of a compile unit without probes."""
    SOURCE = 3
    """It is of no compile unit, or of an assembler's."""


NO_LOCATION = {Lack.PLACE: "no_location"}
"""Reasons by source line."""
NO_PROBE = {Lack.PLACE: "no_probe", Lack.PROBES: "no_probes", Lack.SOURCE: "no_source"}
"""Reasons by probe."""

COMPILE_WITH_PROBES = (
    "compile these files with -fpseudo-probe-for-profiling, too: a note names functions"
)
NOTHING_TO_COMPILE = "nothing, unless it is yours: build that with -g and pseudo probes"
REASONS = {
    "no_location": Reason(
        "without a source location",
        "build with -g (or -g1) and -fdebug-info-for-profiling, and give the unstripped binary",
    ),
    "no_probe": Reason(
        "where the optimizer left no pseudo probe", "nothing: blocks around it tell how often"
    ),
    "no_probes": Reason(
        "in functions of files compiled without pseudo probes", COMPILE_WITH_PROBES
    ),
    "no_source": Reason(
        "in code without debug information, as of the C library or the linkage table",
        NOTHING_TO_COMPILE,
    ),
}


def tallied(step: str, reasons: Mapping[Lack, str], lack: U8, count: U64) -> dict[str, int]:
    """How many of what was counted (n,) is lost before a step, by the reason of what it lacks."""
    return {f"{step}/{reason}": int(count[lack == each].sum()) for each, reason in reasons.items()}
