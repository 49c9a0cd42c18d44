"""A short recording now and then, for ever: what a fleet's hosts run.

Each is taken at a random moment of its period, so that hosts started together, or jobs that begin
with the hour, are seen at all their times. A file has its name when it is whole; so many of the
newest are kept.
"""

from __future__ import annotations

import glob
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.support.errors import InputError, OutputError
from lbr2pgo.support.output import is_standard_output

RecordOnce = Callable[[RecordOptions], int]
_UNFINISHED = ".unfinished"
_TIME = "%Y%m%dT%H%M%S"
_PATTERN = "[0-9]" * 8 + "T" + "[0-9]" * 6


@dataclass(frozen=True, slots=True)
class Rotation:
    """How often to record, and how much to keep; raises InputError for what can't be."""

    every: float = 3600.0
    """Seconds from one period's beginning to the next one's."""
    keep: int = 168
    """Files: a week of hours."""
    seconds: float = 30.0
    """How long each recording is."""

    def __post_init__(self) -> None:
        if not 0 < self.seconds < self.every:
            raise InputError(
                f"{self.seconds:g} seconds of each {self.every:g} can't be recorded",
                cure="Give a --duration that is shorter than --every.",
            )
        if self.keep < 1:
            raise InputError("no file would be kept", cure="Give --keep 1 or more.")


def record_continuously(
    options: RecordOptions,
    rotation: Rotation,
    record_once: RecordOnce,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.time,
) -> int:
    """Record until an interrupt; returns the exit code of a recording that failed, or else 0.

    Files are named like the output, with the time behind it. Raises InputError where nothing that
    runs already is to be recorded, and OutputError for standard output.
    """
    if not options.is_attached:
        raise InputError(
            "a command ends; what is recorded for ever runs already",
            cure="Give -a for all that runs here, or -p.",
        )
    if is_standard_output(options.output):
        raise OutputError("several files can't go to standard output", cure="Give -o FILE.")
    period = clock()
    with suppress(KeyboardInterrupt):
        while True:
            sleep(random.uniform(0, rotation.every - rotation.seconds))
            began = clock()
            code = _record(options, rotation, record_once, began)
            is_interrupted = clock() - began < rotation.seconds
            if code or is_interrupted:  # perf takes the interrupt, and ends well
                return code
            period += rotation.every
            sleep(max(0.0, period - clock()))
    return 0


def _record(
    options: RecordOptions, rotation: Rotation, record_once: RecordOnce, began: float
) -> int:
    """One recording, and what is too old goes."""
    output = options.output
    unfinished = output.with_name(output.name + _UNFINISHED)
    code = record_once(replace(options, output=unfinished, duration=rotation.seconds))
    if code == 0 and unfinished.exists():
        stamp = time.strftime(_TIME, time.gmtime(began))
        unfinished.replace(output.with_name(f"{output.name}.{stamp}"))
        for old in recordings(output)[: -rotation.keep]:
            old.unlink(missing_ok=True)
    return code


def recordings(output: Path) -> list[Path]:
    """The files of an output that were kept, the oldest first."""
    return sorted(output.parent.glob(f"{glob.escape(output.name)}.{_PATTERN}"))
