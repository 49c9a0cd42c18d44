"""Record a training run with whatever this machine has, and convert it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model.doubts import parted
from lbr2pgo.pgo.steps import CommandLine, Detail, Say, command_words
from lbr2pgo.pgo.wants import WANTS, did_nothing, what_it_read
from lbr2pgo.profiles.base import Output
from lbr2pgo.provenance.told_conversion import convert_with_provenance
from lbr2pgo.recorders.hardware import choose_recorder, record_hardware
from lbr2pgo.recorders.machine import read_machine
from lbr2pgo.recorders.options import DEFAULT_STARTUP, RecordOptions, Watch
from lbr2pgo.recorders.software import record_software
from lbr2pgo.support.counted import counted
from lbr2pgo.support.errors import InputError

_FIRST_PERIOD = 37
"""Of recordings under the software LBR: the first prime above the usual depth of a stack."""
_MOST_SAMPLES, _LEAST_SAMPLES = 1 << 18, 1 << 12
"""At how many of them, of all commands together and of one of many, a period doubles."""


@dataclass(frozen=True, slots=True)
class Training:
    """How to train."""

    commands: tuple[str, ...]
    """Each is recorded by itself, and all of them make one profile."""
    period: int | None
    """Taken branches between samples; None: hardware's default, under emulation what is enough."""
    emulate: bool
    """Use the software LBR even where there is hardware."""
    call_graph: bool = False
    """Keep call chains, for a profile by calling context."""
    exact: bool = False
    """Count every branch under the software LBR: no profile is better."""
    any_status: bool = False
    """A command may end with another status than 0."""
    input: Path | None = None
    """A file with the standard input of each command."""
    reproducible: bool = False
    """Record the same wherever it is recorded: see `RecordOptions`."""

    startup: bool = False
    """Record every branch of the start alone, see `RecordOptions`."""

    def __post_init__(self) -> None:
        if self.exact and self.call_graph:
            raise InputError(
                "exact counts know nothing of calling contexts",
                cure="Leave out --exact or --contexts.",
            )

    @property
    def whole_command(self) -> str:
        """All commands in one, through a shell if there are several."""
        return (" ; " if self.any_status else " && ").join(self.commands)


def walks_frame_pointers(training: Training) -> bool:
    """Whether call chains will be those that frame pointers tell: the software LBR needs none."""
    options = _record_options(training, training.commands[0], Path("perf.data"))
    return training.call_graph and choose_recorder(read_machine(), options).hardware


def _record_options(training: Training, command: str, output: Path) -> RecordOptions:
    return RecordOptions(
        output=output, command=command_words(command), period=training.period,
        call_graph=training.call_graph, cycles=True, emulate=training.emulate,
        # Not what this process reads: it is measured without that, and a silent pipe never ends.
        input=training.input or Path(os.devnull),
        exact=exact_beside(output) if training.exact else None,
        reproducible=training.reproducible,
        startup=DEFAULT_STARTUP if training.startup else None,
    )  # fmt: skip


def exact_beside(recording: Path) -> Path:
    """Where the exact counts of a recorded run are kept."""
    return recording.with_suffix(".exact")


def recordings(training: Training, first: Path) -> list[Path]:
    """Where the recording of each command goes."""
    others = range(2, len(training.commands) + 1)
    return [first, *(first.with_name(f"{n}.{first.name}") for n in others)]


def record_all(training: Training, first: Path, say: Say, watch: Watch | None = None) -> int | None:
    """Record each training command; gives the period of the software LBR, None of hardware.

    It adapts to how long a command runs, unless one was asked for. The longest is that of all, once
    the recordings are read together.

    Raises InputError if a command fails, else as the recorders do.
    """
    outputs = recordings(training, first)
    periods = [
        record(training, command, output, say, watch)
        for command, output in zip(training.commands, outputs, strict=True)
    ]
    return max(filter(None, periods), default=None)


def record(
    training: Training, command: str, output: Path, say: Say, watch: Watch | None = None
) -> int | None:
    """Record one of the commands, as `record_all` does."""
    options = _record_options(training, command, output).settled()
    machine = read_machine()
    choice = choose_recorder(machine, options)
    if options.period is None and not choice.hardware:
        most = max(_MOST_SAMPLES // len(training.commands), _LEAST_SAMPLES)
        options = replace(options, period=_FIRST_PERIOD, most_samples=most)
    kept = () if options.most_samples is None else ("--samples", str(options.most_samples))
    emulate = () if choice.hardware else ("--emulate",)
    period = () if options.period is None else ("-c", str(options.period))
    often = ("--startup",) if training.startup else (*emulate, *period, *kept)
    chains = ("--call-graph",) if options.call_graph else ()
    exact = () if options.exact is None else ("--exact", str(options.exact))
    alike = ("--reproducible",) if options.reproducible else ()
    given = (*often, *alike, *chains, *exact, "-o", str(output))
    words = ("lbr2pgo", "record", *given, "--", *options.command)
    source = () if training.input is None else ("<", shlex.quote(str(training.input)))
    say(CommandLine(" ".join((shlex.join(words), *source))))
    recorder = "perf" if choice.hardware else "the software LBR"
    say(Detail(f"with {recorder}: {choice.reason}"))
    used = None
    if choice.hardware:
        code = record_hardware(machine, options, watch=watch)
    else:
        result = record_software(options, watch=watch)
        code, used = result.exit_code, result.period
        for warning in result.warnings:
            say(f"   Warning: {warning}")
        nothing = did_nothing(result.totals.instructions)
        if nothing and not code and not training.startup:
            say(f"   Warning: It {nothing}")
    check_ended(code, "the training run", command, training, what_it_read(training.input))
    return used


def check_ended(code: int, run: str, command: str, training: Training, read: str) -> None:
    """Raise InputError if such a run failed, and may not; `read` is said of its input."""
    if code and not training.any_status:
        raise InputError(
            f"{run} failed with exit code {code}",
            where=command,
            cure=f"{read}: {WANTS} A run that fails tells little; if that is how the program ends, "
            "give --any-status.",
        )


def make_profiles(
    inputs: Sequence[Path],
    binary: Path,
    say: Say,
    outputs: Sequence[Output],
    *,
    provenance: bool = False,
) -> None:
    """Convert recordings; says how much was read, and what had to be assumed."""
    files = map(str, inputs)
    asked = [word for output in outputs for word in output.words()]
    asked += ["--provenance"] if provenance else []
    command = ["lbr2pgo", "convert", *files, "--binary", str(binary), *asked]
    say(CommandLine(shlex.join(command)))
    make = convert_with_provenance if provenance else convert
    done = make(ConvertOptions(tuple(inputs), binary, outputs=tuple(outputs)))
    samples = done.tallies.get("samples_read")
    what = "every branch of the run" if samples is None else counted(samples, "sample")
    say(Detail(what))
    doubts, notes = parted(done.notes)
    for doubt in doubts:
        say(f"   Warning: {doubt}")
    for note in notes:
        say(f"   Note: {note}")
