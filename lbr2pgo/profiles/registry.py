"""Written profile formats, one module each.

To add a format: write its module with a `FORMAT`, and name the module in `_MODULES`. Its options of
`lbr2pgo convert`, its rows in the docs and in fuzzing, its steps of the loss waterfall, and how
written files are recognised and shown follow from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from lbr2pgo.model import waterfall
from lbr2pgo.profiles.base import HEAD_SIZE, Option, Output, OutputFormat
from lbr2pgo.profiles.reader import Reader, WrittenProfile
from lbr2pgo.support.arguments import several
from lbr2pgo.support.errors import InputError, readable

_MODULES = (
    "llvm.format", "bolt.fdata.format", "bolt.yaml.format", "afdo.format", "propeller.format",
    "propeller.order_format", "linker.symbol_order", "linker.startup_order", "linker.temporal",
    "linker.call_graph_order", "data.order", "data.access_profile", "llvm.unpredictable",
    "preaggregated.format", "unsymbolized.format", "counts.format",
)  # fmt: skip


@cache
def _format(module: str) -> OutputFormat:
    found: OutputFormat = import_module(f"lbr2pgo.profiles.{module}").FORMAT
    return found


def formats() -> tuple[OutputFormat, ...]:
    """All formats that can be written, in the order of their options."""
    return tuple(map(_format, _MODULES))


def output(name: str, path: str | Path, **options: object) -> Output:
    """An output of the format with this name, for `ConvertOptions.outputs`.

    `options` are the fields of its class. Raises InputError for a name or an option that does not
    exist, and for options that don't go together.
    """
    known = {form.name: form.output for form in formats()}
    if name not in known:
        raise InputError(f"there is no output {name}", cure=f"There are: {', '.join(known)}.")
    fields = [each.name for each in known[name].options()]
    for option in options:
        if option not in fields:
            cure = f"It takes: {', '.join(fields[1:]) or 'none'}."
            raise InputError(f"the output {name} has no option {option}", cure=cure)
    make: Any = known[name]
    made: Output = make(Path(path), **options)
    return made


def keywords() -> frozenset[str]:
    """Names of all options of all outputs, as Python has them."""
    return frozenset(each.keyword for form in formats() for each in form.output.options())


def asked_outputs(given: Mapping[str, Any]) -> tuple[tuple[Output, ...], tuple[str, ...]]:
    """The outputs whose path is given, by the keywords of their options, and what has no effect.

    That is options of outputs that are not asked for, a sentence each. Raises InputError for a
    value that is none of an option's choices.
    """
    made, idle = [], []
    for form in formats():
        path, *others = form.output.options()
        values = {each: given.get(each.keyword) for each in others}
        told = {
            each: value
            for each, value in values.items()
            if value is not None and value is not False
        }
        if given.get(path.keyword) is not None:
            options = {each.name: _chosen(each, value) for each, value in told.items()}
            made.append(output(form.name, given[path.keyword], **options))
        elif told:
            word = next(iter(told)).flag.word
            idle.append(
                f"{word} says how to write an output that is not asked for: "
                f"add {path.flag.word} OUT"
            )
    return tuple(made), tuple(idle)


def _chosen(option: Option, value: Any) -> Any:
    if option.choices and value not in option.choices:
        cure = f"There are: {', '.join(option.choices)}."
        raise InputError(f"{option.keyword}: there is no {value}", cure=cure)
    return several(value) if option.is_list else value


def every_output(prefix: str | Path) -> tuple[Output, ...]:
    """One output of each format, in its usual form, with its suffix behind the prefix."""
    return tuple(output(form.name, f"{prefix}{form.suffix}") for form in formats())


def steps() -> tuple[waterfall.Step, ...]:
    """All steps of the loss waterfall, those of outputs last."""
    every = [*waterfall.STEPS, *(step for form in formats() for step in form.steps)]
    return tuple({step.key: step for step in every}.values())


def waterfall_rows(tallies: Mapping[str, int]) -> tuple[waterfall.Row, ...]:
    """The loss waterfall of a conversion, step by step; steps that were not taken are left out."""
    return waterfall.rows(tallies, steps())


def reader_of(path: Path) -> Reader[Any] | None:
    """What reads a written profile, by its content; None if it is none.

    Raises InputError if it can't be read, is empty, or is of a format that is only written.
    """
    found = _recognised(path)
    return None if found is None else found[1]


def read_written(path: Path) -> WrittenProfile[Any] | None:
    """A written profile, told by its content; None if the file is none.

    Raises InputError if it can't be read, is empty or broken, or is only written.
    """
    found = _recognised(path)
    return None if found is None else WrittenProfile(path, *found, found[1].read(path))


def read_alike(old: Path, new: Path) -> tuple[WrittenProfile[Any], WrittenProfile[Any]]:
    """Two written profiles that tell counts of one kind.

    Raises InputError for what is no written profile, tells of none, or is of another kind.
    """
    before, after = _weighty(old), _weighty(new)
    kinds = [each.weights and each.weights.kind for each in (before, after)]
    if kinds[0] != kinds[1]:
        raise InputError(
            f"is of another kind ({kinds[1]}) than {old} ({kinds[0]})",
            where=str(new),
            cure="Compare profiles of one kind.",
        )
    return before, after


def _weighty(path: Path) -> WrittenProfile[Any]:
    written = read_written(path)
    if written is None:
        raise InputError(
            "is no written profile",
            where=str(path),
            cure="Recordings are compared by `lbr2pgo report NEW --against OLD`.",
        )
    if written.weights is None:
        raise InputError(
            f"tells of no counts ({written.reader.kind})",
            where=str(path),
            cure="Compare the profiles that it was made with.",
        )
    return written


def _recognised(path: Path) -> tuple[str, Reader[Any]] | None:
    """Name of the format, and what reads it; raises InputError for what is only written."""
    with readable(path), path.open("rb") as stream:
        head = stream.read(HEAD_SIZE)
    if not head:
        raise InputError("is empty", where=str(path), cure="Write the profile again.")
    for form in formats():
        if form.only_written and head.startswith(form.only_written):
            cure = "Give the recording that it was made of, or a profile that is read again."
            raise InputError(
                f"is of a format that is only written ({form.forms[0].name})",
                where=str(path),
                cure=cure,
            )
    readers = ((form.name, reader) for form in formats() for reader in form.readers())
    return next((found for found in readers if found[1].recognises(head)), None)
