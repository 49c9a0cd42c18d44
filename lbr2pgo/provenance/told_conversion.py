"""A conversion that tells what each of its outputs came of."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from lbr2pgo import __version__
from lbr2pgo.conversion import Conversion, ConvertOptions, convert
from lbr2pgo.profiles.base import Output
from lbr2pgo.profiles.registry import formats
from lbr2pgo.program.dwarf.compile_units import CompileUnit, command_lines, units
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.provenance.told import (
    Provenance,
    ToldRecording,
    hash_of,
    path_beside,
    write_provenance,
)
from lbr2pgo.sources.series import open_recordings
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.headway import Progress
from lbr2pgo.support.output import is_standard_output, refuse_overwriting, refuse_unwritable
from lbr2pgo.support.timings import Timings

_NOT_TOLD = ("profiles", "binary", "outputs", "optional")
"""Of `ConvertOptions`, what others tell."""


def convert_with_provenance(
    options: ConvertOptions, progress: Progress | None = None, timings: Timings | None = None
) -> Conversion:
    """As `convert`, with the provenance of each output beside it."""
    outputs = (*options.outputs, *options.optional)
    if any(map(_is_stream, options.paths)):
        raise InputError(
            "what goes to a stream has no place for a provenance beside it",
            cure="Give the output a file, or leave out --provenance.",
        )
    for path in options.profiles:
        if str(path) == "-" or path.is_fifo():
            raise InputError(
                "has no provenance: it can be read only once",
                where=str(path),
                cure="Record into a file, or leave out --provenance.",
            )
    beside = [path_beside(each.paths[0]) for each in outputs]
    refuse_overwriting([*options.paths, *beside], options.paths_read)
    refuse_unwritable(beside)
    timings = timings or Timings()
    done = convert(options, progress, timings)
    with timings.stage("write provenance"):
        make = _provenance(options, done)
        written = [each for each in outputs if each.paths[0] in done.written]
        for each in written:
            path, name = each.paths[0], _name(each)
            own = make(output=name, sha256=hash_of(path), options=_options(options, each))
            write_provenance(own, path)
    paths = (path_beside(each.paths[0]) for each in written)
    return replace(done, written=(*done.written, *paths))


def _is_stream(path: Path) -> bool:
    return is_standard_output(path) or (path.exists() and not path.is_file())


def _provenance(options: ConvertOptions, done: Conversion) -> Callable[..., Provenance]:
    """With all that outputs have in common."""
    program = Program.open(done.binary)
    found = _units(program)
    compilers = Counter(unit.producer for unit in found)
    return partial(
        Provenance,
        version=__version__,
        program=done.binary.name,
        build_id=program.image.layout.build_id,
        compilers=tuple(name for name, _ in compilers.most_common() if name),
        flags=command_lines(program.image),
        revision=_revision(found, done.binary),
        recordings=tuple(_recordings(options.profiles)),
        samples=done.tallies.get("samples_selected"),
    )


def _units(program: Program) -> list[CompileUnit]:
    source = DebugInfo(program.debug_files).source
    return [] if source is None else units(source.file)


def _recordings(paths: Sequence[Path]) -> Iterator[ToldRecording]:
    """A row for each file: parts of a series are files of their own."""
    for path in paths:
        info = open_recordings([path])[0].source.info
        event = info.events[0] if info.events else None
        made_by = info.details.get("recorder") or info.details.get("perf")
        recorder = ", ".join(filter(None, (made_by, info.details.get("cpu"))))
        yield ToldRecording(
            path.name, hash_of(path), info.format, recorder or None,
            None if event is None else event.name, None if event is None else event.period,
            info.is_exact,
        )  # fmt: skip


def _revision(found: Sequence[CompileUnit], binary: Path) -> str | None:
    """The commit of the tree that most units were compiled in, else of that of the program."""
    directories = Counter(unit.directory for unit in found if os.path.isabs(unit.directory))
    compiled_in = [name for name, _ in directories.most_common(1) if os.path.isdir(name)]
    directory = compiled_in[0] if compiled_in else str(binary.resolve().parent)
    with suppress(OSError):  # no git
        done = subprocess.run(
            ["git", "-C", directory, "rev-parse", "--verify", "--quiet", "HEAD"],
            capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip() or None if not done.returncode else None
    return None


def _name(output: Output) -> str:
    """Of an output's format."""
    (name,) = (form.name for form in formats() if form.output is type(output))
    return name


def _options(options: ConvertOptions, output: Output) -> dict[str, Any]:
    told = {**_unusual(options, _NOT_TOLD), "output": _unusual(output, ("path",))}
    return {name: value for name, value in told.items() if value}


def _unusual(of: Any, passed: Sequence[str] = ()) -> dict[str, Any]:
    """Fields whose values are not those that they have where nobody says anything."""
    found = {}
    for field in fields(of):
        value = getattr(of, field.name)
        if field.name in passed or value == _usual(field):
            continue
        plain = _unusual(value) if is_dataclass(value) else value
        found[field.name] = sorted(plain) if isinstance(plain, frozenset) else plain
    return found


def _usual(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
