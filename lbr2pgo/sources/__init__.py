"""Readable profile formats, one module each, recognised by content.

To add a format: write its module with a `FORMAT`, and name the module in `_MODULES`.
"""

from __future__ import annotations

import signal
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from lbr2pgo.model.quirks import QUIRKS, Quirk
from lbr2pgo.sources.base import SNIFF_SIZE, Sniff, Source, SourceFormat
from lbr2pgo.sources.directories import HEAD
from lbr2pgo.support.errors import InputError, readable

# Asked in this order. Numbers in plain text are the weakest mark, so they come last.
_MODULES = (
    "perf_data.reader",
    "saved_counts",
    "exact_counts",
    "parquet_counts",
    "registers.intel_msr",
    "registers.amd_msr",
    "registers.brbe",
    "registers.ctr",
    "perf_script.reader",
    "preaggregated",
    "autofdo_text",
    "pprof_profile",
    "otlp_profile",
    "uprof",
    "branch_csv",
)


@cache
def _format(module: str) -> SourceFormat:
    form: SourceFormat = import_module(f"lbr2pgo.sources.{module}").FORMAT
    return form


def formats() -> tuple[SourceFormat, ...]:
    """All readable formats, in the order in which they are asked."""
    return tuple(map(_format, _MODULES))


def quirks() -> tuple[Quirk, ...]:
    """Those that show in any format, and then those of one."""
    return (*QUIRKS, *(quirk for form in formats() for quirk in form.quirks))


def register_formats() -> tuple[SourceFormat, ...]:
    """Those of dumps of branch registers."""
    return tuple(_format(module) for module in _MODULES if module.startswith("registers."))


def open_source(path: str | Path) -> Source:
    """Open a profile of any readable format; `-` is standard input, and pipes are read to the end.

    Raises InputError if the file can't be read, is of no known format, or is broken.
    """
    path = Path(path)
    if str(path) == "-":
        return _open_spooled(_standard_input(), "standard-input")
    if path.is_fifo():
        with path.open("rb") as stream:
            return _open_spooled(stream, path.name)
    return format_of(path).open(path)


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise InputError(
            "can't be read: standard input is closed",
            where="-",
            cure="Lead the profile to it, or give its path.",
        )
    return sys.stdin.buffer


def format_of(path: Path) -> SourceFormat:
    """The format of a file, by its content; raises InputError as `open_source` does."""
    head = _head(path)
    for form in map(_format, _MODULES):  # what comes after the right one is never loaded
        if form.sniff(head) is Sniff.YES:
            return form
    raise _unknown(head, str(path))


_OTHER_KINDS = (
    (
        b"\x7fELF",
        "an ELF file",
        "Name the program with --binary only.",
    ),
    (
        b'{"resourceProfiles"',
        "OpenTelemetry profiles as JSON",
        "Have the collector's file exporter write format: proto.",
    ),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", "Unpack it first, with zstd -d."),
    (b"\x1f\x8b", "packed with gzip", "Unpack it first, with gzip -d."),
    (b"\xfd7zXZ\x00", "packed with xz", "Unpack it first, with xz -d."),
    (b"BZh", "packed with bzip2", "Unpack it first, with bzip2 -d."),
)
"""What people take for a profile: how such a file begins, what it is, and what to do."""


def _unknown(head: bytes, where: str) -> InputError:
    what = "is no profile of a known format" if head else "is empty"
    for magic, kind, advice in _OTHER_KINDS:
        if head.startswith(magic):
            return InputError(f"{what}, but {kind}", where=where, cure=advice)
    readable = ", ".join(form.name for form in formats())
    cure = (
        f"Readable are {readable}. Profiles for compilers and BOLT go to lbr2pgo check, merge "
        "and dump profile."
    )
    return InputError(what, where=where, cure=cure)


def _head(path: Path) -> bytes:
    if path.is_dir():
        if not (path / HEAD).is_file():
            raise InputError(
                "is a directory, and none that perf record --threads wrote",
                where=str(path),
                cure="Name a file in it.",
            )
        path = path / HEAD
    with readable(path), path.open("rb") as stream:
        return stream.read(SNIFF_SIZE)


def _open_spooled(stream: BinaryIO, name: str) -> Source:
    """Open what a pipe delivers as a file, since readers go over their input more than once.

    The file goes with the source.
    """
    import tempfile
    from shutil import copyfileobj
    from weakref import finalize

    # A signal ends the run by an exception, which must find the file sure to be removed.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        spool = tempfile.NamedTemporaryFile(prefix=f"lbr2pgo-{name}-")  # noqa: SIM115
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    copyfileobj(stream, spool)
    spool.flush()
    path = Path(spool.name)
    source = format_of(path).open(path)
    finalize(source, spool.close)
    return source
