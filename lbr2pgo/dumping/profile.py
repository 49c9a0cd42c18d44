"""Sample profiles and fdata, told apart by their content, whole or of one function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np

from lbr2pgo.profiles.bolt import fdata
from lbr2pgo.profiles.bolt.fdata_tables import Fdata, FdataTable, TableT
from lbr2pgo.profiles.llvm import text as llvm_text
from lbr2pgo.profiles.llvm.sample_names import Name, guid
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile
from lbr2pgo.profiles.recognize import read_written
from lbr2pgo.program.code.lookup import near_matches
from lbr2pgo.support.errors import InputError


def lines(path: Path, function: str | None = None) -> Iterator[str]:
    """The file as text; raises InputError where it is none, or does not hold the function."""
    content = read_written(path)
    if isinstance(content, SampleProfile):
        return _sample_lines(content, path, function)
    if isinstance(content, Fdata):
        return _fdata_lines(content, path, function)
    raise InputError(
        "is neither a sample profile nor fdata",
        where=str(path),
        cure="Recordings are shown by `lbr2pgo dump stacks` and `lbr2pgo dump counts`.",
    )


def _missing(path: Path, function: str, names: list[str]) -> InputError:
    near = near_matches(function, names)
    cure = f"Near matches: {', '.join(near)}." if near else "Leave the name out to see all."
    return InputError(f"holds nothing of {function}", where=str(path), cure=cure)


def _sample_lines(profile: SampleProfile, path: Path, function: str | None) -> Iterator[str]:
    if function is None:
        return _written(profile)
    own = {k: f for k, f in profile.functions.items() if guid(f.name) == guid(function)}
    copies = [
        line for top in profile.ordered() for line in _inlined(top, str(top.name), guid(function))
    ]
    if not own and not copies:
        names = {str(each.name) for top in profile.functions.values() for each in _all(top)}
        raise _missing(path, function, sorted(names))
    return _joined(_written(replace(profile, functions=own)), copies)


def _joined(own: Iterator[str], copies: list[str]) -> Iterator[str]:
    yield from own
    yield from copies


def _written(profile: SampleProfile) -> Iterator[str]:
    stream = BytesIO()
    llvm_text.write(profile, stream)
    text = stream.getvalue().decode("utf-8", "surrogateescape")
    return iter(text.removesuffix("\n").split("\n") if text else ())


def _inlined(function: FunctionSamples, chain: str, wanted: int) -> Iterator[str]:
    """One line for each inlined copy of a function, as a comment of the text form."""
    for (line, discriminator), callee in function.inlined():
        place = f"{line}.{discriminator}" if discriminator else str(line)
        inner = f"{chain}:{place} @ {callee.name}"
        if guid(callee.name) == wanted:
            yield f"# inlined, {callee.total} samples: {inner}"
        yield from _inlined(callee, inner, wanted)


def _all(function: FunctionSamples) -> Iterator[FunctionSamples]:
    yield function
    for _, callee in function.inlined():
        yield from _all(callee)


def _fdata_lines(content: Fdata, path: Path, function: str | None) -> Iterator[str]:
    if function is not None:
        wanted = [i for i, name in enumerate(content.names) if function in (name, _plain(name))]
        if not wanted:
            raise _missing(path, function, list(content.names))
        content = _only(content, wanted)
    stream = BytesIO()
    fdata.write(content, stream)
    text = stream.getvalue().decode("utf-8", "surrogateescape")
    return iter(text.removesuffix("\n").split("\n") if text else ())


def _plain(name: Name) -> str:
    """A local symbol's name without what BOLT puts behind it (`name/file.c/1`)."""
    return str(name).partition("/")[0]


def _only(content: Fdata, names: list[int]) -> Fdata:
    def chosen(table: TableT | None) -> TableT | None:
        return None if table is None else table.take(_rows(table, names))

    return replace(
        content,
        branches=chosen(content.branches),
        samples=chosen(content.samples),
        loads=chosen(content.loads),
    )


def _rows(table: FdataTable, names: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Rows that begin or end in one of these names."""
    found = np.zeros(len(table), dtype=np.bool_)
    for letter, column in zip(table.form, table.columns(), strict=True):
        if letter == "n":
            found |= np.isin(column, names)
    return np.flatnonzero(found)
