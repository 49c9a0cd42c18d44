"""Profiles converted and judged, and programs measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from lbr2pgo.api.keywords import (
    CheckKeywords,
    RecordKeywords,
    SampleKeywords,
    binaries_of,
    binary_of,
    profiles_of,
    reading_options,
)
from lbr2pgo.conversion import Conversion, ConvertOptions
from lbr2pgo.conversion import convert as _convert
from lbr2pgo.fleet.images import Images, ImagesOptions, convert_images, refuse_one_image
from lbr2pgo.model.compat import Compat
from lbr2pgo.profiles.base import Output
from lbr2pgo.profiles.registry import asked_outputs, every_output, formats, keywords
from lbr2pgo.program.elf.find import ImagePlaces
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import Source
from lbr2pgo.support.arguments import (
    Paths,
    optional_path,
    path_of,
    paths_of,
    refuse_unknown,
    several,
    texts_of,
)
from lbr2pgo.support.errors import OutputError
from lbr2pgo.support.executables import runnable
from lbr2pgo.support.output import PathLike, refuse_overwriting
from lbr2pgo.support.threads import at_most

if TYPE_CHECKING:
    from lbr2pgo.analyses.accuracy import Accuracy
    from lbr2pgo.analyses.settling import Settled
    from lbr2pgo.pgo.measurements import Measurements
    from lbr2pgo.pgo.native_memory import MemoryState
    from lbr2pgo.profiles.carried.carry import Carried
    from lbr2pgo.recorders.recording import RecordedFile
    from lbr2pgo.reports.checking import Checked


def record(
    command: Paths = (),
    *,
    output: PathLike = "perf.data",
    exact: PathLike | None = None,
    keep_binary: bool = False,
    **how: Unpack[RecordKeywords],
) -> RecordedFile:
    """Record a command, a program with its arguments; or, with `pid` or `all_cpus`, what runs.

    The program's output goes where ours goes. Options are those of `lbr2pgo record`; `notes` of
    the result say with what it was recorded, and why. Raises InputError for what can't be recorded,
    MissingToolError where what it takes is not installed, and OutputError where the files can't be
    written.
    """
    from lbr2pgo.api.start_end import start_end
    from lbr2pgo.recorders.front_end import preset
    from lbr2pgo.recorders.machine import read_machine
    from lbr2pgo.recorders.options import RecordOptions
    from lbr2pgo.recorders.recording import record_at_best

    refuse_unknown(how, RecordKeywords)
    shared: dict[str, Any] = {"cycles": True, **how}
    words, said = texts_of(command, "command"), list[str]()
    words = (*map(runnable, words[:1]), *words[1:])
    until = shared.pop("until", None)
    options = RecordOptions(
        output=path_of(output, "output"),
        command=words,
        until=None if until is None else start_end(until, words),
        exact=optional_path(exact, "exact"),
        pids=several(shared.pop("pid", ())),
        filters=several(shared.pop("filter", ())),
        most_samples=shared.pop("samples", None),
        front_end=preset(shared.pop("model")) if "model" in shared else None,
        **shared,
    )
    made = replace(record_at_best(read_machine(), options, say=said.append), notes=tuple(said))
    return _with_programs(made) if keep_binary and made.is_written else made


def _with_programs(made: RecordedFile) -> RecordedFile:
    """Keep the recorded programs beside the recording."""
    from lbr2pgo.replay.kept_programs import keep_programs

    kept, problems = keep_programs(made.path)
    return replace(made, kept=tuple(kept), warnings=(*made.warnings, *problems))


@overload
def convert(
    profiles: Paths,
    binary: PathLike | None = None,
    *,
    all_images: Literal[False] = False,
    **options: Any,
) -> Conversion: ...


@overload
def convert(
    profiles: Paths,
    binary: list[Any] | tuple[Any, ...],
    *,
    all_images: bool = False,
    **options: Any,
) -> Images: ...


@overload
def convert(
    profiles: Paths, binary: Paths | None = None, *, all_images: Literal[True], **options: Any
) -> Images: ...


def convert(
    profiles: Paths,
    binary: Paths | None = None,
    *,
    all_images: bool = False,
    sysroot: Paths = (),
    outputs: Iterable[Output] = (),
    all: PathLike | None = None,
    compat: str | Iterable[str] = (),
    correct_runs: bool = False,
    no_lbr: bool = False,
    infer: bool = False,
    force: bool = False,
    provenance: bool = False,
    threads: int | None = None,
    **options: Any,
) -> Conversion | Images:
    """Convert recordings of one program; `binary` is the one that they name, if it is left out.

    Each output is asked for by the path that it goes to, and has its options: `llvm="app.prof",
    llvm_format="extbinary", fdata="app.fdata"`; `outputs` are further ones, made by
    `lbr2pgo.output`. With `provenance` each has beside it what it came of. `threads` is how many
    work, by default as many as the process may use, and pay. Options choose samples, too:
    `pid=[17, 18]`, `time=(1.5, None)`. All are those of `lbr2pgo convert`. Several binaries, or
    with `all_images` every mapped file that is found, are `Images`, whose outputs have `{name}` or
    `{build_id}` in their paths. Raises TypeError that names the argument for one of a wrong type,
    and else what `Lbr2pgoError` stands for.
    """
    refuse_unknown(options, SampleKeywords, also=keywords())
    for form in formats():
        word = form.output.options()[0].keyword
        optional_path(options.get(word), word)
    written, idle = asked_outputs(options)
    samples: SampleKeywords = options  # type: ignore[assignment]  # of which only its own are read
    shared: dict[str, Any] = {
        **reading_options(samples),
        "profiles": profiles_of(profiles),
        "outputs": (*written, *outputs),
        "compat": Compat(frozenset(several(compat))),
        "correct_runs": correct_runs,
        "force": force,
    }
    main, others = binaries_of(binary)
    if all_images or others:
        refuse_one_image(no_lbr=no_lbr, infer=infer, all=all is not None, provenance=provenance)
        shared["binaries"] = () if main is None else (main, *others)
        shared["places"] = ImagePlaces(paths_of(sysroot, "sysroot"))
        with at_most(threads):
            images = convert_images(ImagesOptions(**shared, all_images=all_images))
        return replace(images, notes=(*idle, *images.notes))
    optional = () if all is None else every_output(path_of(all, "all"))
    wanted = ConvertOptions(**shared, binary=main, optional=optional, no_lbr=no_lbr, infer=infer)
    with at_most(threads):
        if provenance:
            from lbr2pgo.provenance.told_conversion import convert_with_provenance

            done = convert_with_provenance(wanted)
        else:
            done = _convert(wanted)
    return replace(done, notes=(*idle, *done.notes))


def check(
    profile: PathLike,
    binary: PathLike,
    *,
    against: PathLike | None = None,
    new_build: PathLike | None = None,
    verify: Paths = (),
    **how: Unpack[CheckKeywords],
) -> Checked:
    """Judge a recording of a program, or a written profile.

    `against` is another of these, `new_build` the program that is to use the profile, if that is
    not the one that was recorded. `verify` are the recordings that it should have come of: it is
    made of them again. `min_…` and `max_…` are gates. Raises as `convert`.
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
            paths_of(verify, "verify"),
        )
    )


def settle(new: PathLike, onto: PathLike, output: PathLike, *, exact: bool = False) -> Settled:
    """Write a new sample profile with the numbers of an old one, where chance is the difference.

    Options are those of `lbr2pgo settle`; raises as `diff`, and OutputError.
    """
    from lbr2pgo.pgo.settled_files import settle_files

    paths = path_of(new, "new"), path_of(onto, "onto"), path_of(output, "output")
    return settle_files(*paths, is_exact=exact)


def carry(
    profile: PathLike,
    output: PathLike,
    *,
    from_: PathLike | None = None,
    to: PathLike | None = None,
    git: str | None = None,
    min_carried: float = 0.0,
) -> Carried:
    """Write a profile for a later source or build, by what became of the places it tells of.

    `from_` and `to` are both source trees, or programs; `git` names revisions of a tree. Options
    are those of `lbr2pgo carry`; raises as `diff`, and OutputError, also where a smaller share of
    the counts is carried than `min_carried`: nothing is written then.
    """
    from lbr2pgo.profiles.carried.carry import carry as _carry

    old, new = path_of(profile, "profile"), path_of(output, "output")
    refuse_overwriting([new], [old])
    done = _carry(old, optional_path(from_, "from_"), optional_path(to, "to"), git)
    if done.account.carried() < min_carried:
        least = f"min_carried is {min_carried:.1%}"
        raise OutputError(f"{done.verdict}, and {least}", where=str(new), cure="Train again.")
    done.write(new)
    return done


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
    curves: bool = False,
) -> Accuracy:
    """Compare a recording with the exact counts of the same run; raises as `convert`.

    With `curves` also how near it comes with shorter stacks, and samples of instructions.
    """
    from lbr2pgo.analyses.accuracy_curves import curve_table
    from lbr2pgo.analyses.judging import curves as _curves
    from lbr2pgo.analyses.judging import judge

    options = ConvertOptions(
        **reading_options({"event": event, "correct_bias": correct_bias}),
        profiles=(path_of(profile, "profile"),),
        binary=binary_of(binary),
        correct_runs=correct_runs,
        no_lbr=no_lbr,
        infer=infer,
    )
    truth = path_of(exact, "exact")
    found = judge(options, truth)
    if not curves:
        return found
    points = _curves(path_of(profile, "profile"), truth, binary_of(binary))
    return replace(found, curves=curve_table(points))


def measure(
    binaries: Paths,
    arguments: Iterable[str] = (),
    *,
    runs: int | None = None,
    precision: float = 1.0,
    input: PathLike | None = None,
    model: str | None = None,
    memory: MemoryState | None = None,
) -> Measurements:
    """Count and time programs that do the same work; ratios are to the first.

    Each gets these arguments, and the content of `input` as its standard input. `runs` are timed
    (0: none; None: as many as half an interval of `precision` per cent needs). `model` names a
    front end that is simulated beside ("": the usual one), such as "zen4". `memory` asks for what
    native runs have in memory, whose files are in the page cache before ("warm") or not ("cold").
    Raises InputError where they do not end alike, and MissingToolError where they can't be
    emulated.
    """
    from lbr2pgo.pgo.measurements import measure_programs
    from lbr2pgo.pgo.timing import Rounds

    names = [runnable(name) for name in texts_of(binaries, "binaries")]
    source = optional_path(input, "input")
    rounds = Rounds(runs, precision / 100)
    return measure_programs(names, several(arguments), rounds, source, model=model, memory=memory)


def open(path: PathLike) -> Source:
    """Open a recording of any readable format.

    Of a `StackSource`, what `batches()` gives can be gone through as often as wanted: each time
    is a new reading. Raises InputError where there is nothing that can be read.
    """
    return open_source(path_of(path, "path"))
