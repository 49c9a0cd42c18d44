"""Profiles converted and judged, and programs measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from lbr2pgo.api.keywords import (
    CheckKeywords,
    SampleKeywords,
    binary_of,
    profiles_of,
    reading_options,
)
from lbr2pgo.conversion import Conversion, ConvertOptions
from lbr2pgo.conversion import convert as _convert
from lbr2pgo.model.compat import Compat
from lbr2pgo.profiles.base import Output
from lbr2pgo.profiles.registry import asked_outputs, every_output, formats, keywords
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import Source
from lbr2pgo.support.arguments import (
    Paths,
    optional_path,
    path_of,
    refuse_unknown,
    several,
    texts_of,
)
from lbr2pgo.support.executables import runnable
from lbr2pgo.support.output import PathLike

if TYPE_CHECKING:
    from lbr2pgo.analyses.accuracy import Accuracy
    from lbr2pgo.pgo.measurements import Measurements
    from lbr2pgo.reports.checking import Checked


def convert(
    profiles: Paths,
    binary: PathLike | None = None,
    *,
    outputs: Iterable[Output] = (),
    all: PathLike | None = None,
    compat: str | Iterable[str] = (),
    correct_runs: bool = False,
    no_lbr: bool = False,
    infer: bool = False,
    force: bool = False,
    **options: Any,
) -> Conversion:
    """Convert recordings of one program; `binary` is the one that they name, if it is left out.

    Each output is asked for by the path that it goes to, and has its options: `llvm="app.prof",
    llvm_format="extbinary", fdata="app.fdata"`; `outputs` are further ones, made by
    `lbr2pgo.output`. Options choose samples, too: `pid=[17, 18]`, `time=(1.5, None)`. All are those
    of `lbr2pgo convert`. Raises TypeError that names the argument for one of a wrong type, and else
    what `Lbr2pgoError` stands for.
    """
    refuse_unknown(options, SampleKeywords, also=keywords())
    for form in formats():
        word = form.output.options()[0].keyword
        optional_path(options.get(word), word)
    written, idle = asked_outputs(options)
    samples: SampleKeywords = options  # type: ignore[assignment]  # of which only its own are read
    done = _convert(
        ConvertOptions(
            **reading_options(samples),
            profiles=profiles_of(profiles),
            binary=None if binary is None else binary_of(binary),
            outputs=(*written, *outputs),
            optional=() if all is None else every_output(path_of(all, "all")),
            compat=Compat(frozenset(several(compat))),
            correct_runs=correct_runs,
            no_lbr=no_lbr,
            infer=infer,
            force=force,
        )
    )
    return replace(done, notes=(*idle, *done.notes))


def check(
    profile: PathLike,
    binary: PathLike,
    *,
    against: PathLike | None = None,
    new_build: PathLike | None = None,
    **how: Unpack[CheckKeywords],
) -> Checked:
    """Judge a recording of a program, or a written profile.

    `against` is another of these, `new_build` the program that is to use the profile, if that is
    not the one that was recorded. `min_…` and `max_…` are gates. Raises as `convert`.
    """
    from lbr2pgo.analyses.quality import Gates
    from lbr2pgo.replay.replaying import ReadingOptions
    from lbr2pgo.reports.checking import CheckOptions
    from lbr2pgo.reports.checking import check as _check

    refuse_unknown(how, CheckKeywords)
    old = optional_path(against, "against")
    return _check(
        CheckOptions(
            str(path_of(profile, "profile")),
            binary_of(binary),
            None if old is None else str(old),
            optional_path(new_build, "new_build"),
            Gates.of(how),
            ReadingOptions(**reading_options(how)),
        )
    )


def accuracy(
    profile: PathLike,
    exact: PathLike,
    binary: PathLike,
    *,
    event: str | None = None,
    correct_bias: bool = False,
    correct_runs: bool = False,
    no_lbr: bool = False,
    infer: bool = False,
) -> Accuracy:
    """Compare a recording with the exact counts of the same run; raises as `convert`."""
    from lbr2pgo.analyses.judging import judge

    options = ConvertOptions(
        **reading_options({"event": event, "correct_bias": correct_bias}),
        profiles=(path_of(profile, "profile"),),
        binary=binary_of(binary),
        correct_runs=correct_runs,
        no_lbr=no_lbr,
        infer=infer,
    )
    return judge(options, path_of(exact, "exact"))


def measure(
    binaries: Paths,
    arguments: Iterable[str] = (),
    *,
    runs: int | None = None,
    precision: float = 1.0,
    input: PathLike | None = None,
) -> Measurements:
    """Count and time programs that do the same work; ratios are to the first.

    Each gets these arguments, and the content of `input` as its standard input. `runs` are timed
    (0: none; None: as many as half an interval of `precision` per cent needs). Raises InputError
    where they do not end alike, and MissingToolError where they can't be emulated.
    """
    from lbr2pgo.pgo.measurements import measure_programs
    from lbr2pgo.pgo.timing import Rounds

    names = [runnable(name) for name in texts_of(binaries, "binaries")]
    source = optional_path(input, "input")
    return measure_programs(names, several(arguments), Rounds(runs, precision / 100), source)


def open(path: PathLike) -> Source:
    """Open a recording of any readable format.

    Of a `StackSource`, what `batches()` gives can be gone through as often as wanted: each time
    is a new reading. Raises InputError where there is nothing that can be read.
    """
    return open_source(path_of(path, "path"))
