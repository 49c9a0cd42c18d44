"""Outputs of conversions, asked for by the names of their formats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lbr2pgo.profiles.base import Form, Output, OutputFormat
from lbr2pgo.profiles.registry import formats, output, read_written


def outputs(**paths: Path) -> tuple[Output, ...]:
    """One of each format that is named, with its usual options."""
    return tuple(output(name, path) for name, path in paths.items())


def forms() -> Iterator[tuple[OutputFormat, Form]]:
    """Every form that anything is written in."""
    return ((format_, form) for format_ in formats() for form in format_.forms)


def usual_forms() -> Iterator[tuple[OutputFormat, Form]]:
    """Those that any program with symbols and debug information will do for."""
    return ((format_, form) for format_, form in forms() if not form.needs)


def every_form(folder: Path) -> tuple[Output, ...]:
    """One output of each usual form, named after its key."""
    return tuple(output(f.name, folder / form.key, **form.options) for f, form in usual_forms())


def held(path: Path) -> object | None:
    """What a written profile holds, in its format's own model; None if the file is none."""
    written = read_written(path)
    return None if written is None else written.content
