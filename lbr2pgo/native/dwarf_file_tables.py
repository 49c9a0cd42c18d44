"""Directory and file tables of a line program's header.

Source: DWARF 5, 6.2.4; DWARF 4, 6.2.4 for versions 2 to 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lbr2pgo.native.dwarf_bytes import Int, after_string, fixed, grown, uleb
from lbr2pgo.native.dwarf_forms import STRING, read_form
from lbr2pgo.native.jit import compiled, compiled_leaf
from lbr2pgo.native.rows import row_type
from lbr2pgo.support.arrays import Bytes

NAME = row_type([("form", np.int16), ("value", np.uint64), ("directory", np.uint64)])
"""A directory or a file: the form and value of its name, and a file's directory index."""

_PATH, _DIRECTORY_INDEX = 1, 2  # DW_LNCT_*


@compiled
def _read_formats(data: Bytes, at: Int, end: Int) -> Any:
    """What an entry consists of: rows (content type, form) of (k, 2) i64, and the position."""
    count, at = fixed(data, at, end, 1)
    formats = np.zeros((np.int64(count), 2), np.int64)
    for i in range(len(formats)):
        content, at = uleb(data, at, end)
        form, at = uleb(data, at, end)
        formats[i, 0] = np.int64(min(content, np.uint64(0xFFFF)))
        formats[i, 1] = np.int64(min(form, np.uint64(0xFFFF)))
    return formats, at


@compiled_leaf
def _read_entry(data: Bytes, at: Int, header: Any, formats: Any, name: Any) -> Any:
    """Fill `name` from the entry at `at`; the position behind it, negative if it is damaged."""
    name.form, name.value, name.directory = 0, 0, 0
    for i in range(len(formats)):
        if at < 0:
            return at
        form, value, at = read_form(
            data, at, header.program, formats[i, 1],
            header.version, header.address_size, header.offset_size,
        )  # fmt: skip
        if formats[i, 0] == _PATH:
            name.form, name.value = form, value
        elif formats[i, 0] == _DIRECTORY_INDEX:
            name.directory = value
    return at


@compiled
def _read_table(data: Bytes, at: Int, header: Any) -> Any:
    """A table of DWARF 5: (rows of `NAME`, the position behind it, negative if damaged)."""
    names = np.empty(16, NAME)
    formats, at = _read_formats(data, at, header.program)
    count, at = uleb(data, at, header.program)
    n = np.int64(0)
    while n < count and at >= 0:
        names = grown(names, n)
        behind = _read_entry(data, at, header, formats, names[n])
        # An entry without bytes could be repeated 2**64 times.
        at = behind if behind > at else -1
        if at >= 0:
            n += 1
    return names[:n], at


@compiled
def _read_classic_directories(data: Bytes, at: Int, end: Int) -> Any:
    """The directories of versions 2 to 4: (rows of `NAME`, the position behind them or -1)."""
    names = np.empty(16, NAME)
    n = np.int64(0)
    while at >= 0:
        behind = after_string(data, at, end)
        if behind <= at + 1:
            return names[:n], behind
        names = grown(names, n)
        names[n].form, names[n].value, names[n].directory = STRING, at, 0
        n += 1
        at = behind
    return names[:n], at


@compiled
def read_classic_file(data: Bytes, at: Int, end: Int, name: Any) -> Any:
    """Fill `name` with a file of versions 2 to 4; the position behind it, or -1."""
    name.form, name.value = STRING, np.uint64(max(at, 0))
    at = after_string(data, at, end)
    name.directory, at = uleb(data, at, end)
    for _ in range(2):
        _, at = uleb(data, at, end)
    return at


@compiled
def read_file_tables(data: Bytes, header: Any) -> Any:
    """Directories and files of a table: rows of `NAME` each, up to what is damaged."""
    if header.version >= 5:
        directories, at = _read_table(data, header.tables, header)
        if at < 0:
            return directories, directories[:0]
        return directories, _read_table(data, at, header)[0]
    directories, at = _read_classic_directories(data, header.tables, header.program)
    files = np.empty(16, NAME)
    n = np.int64(0)
    while 0 <= at < header.program and data[at] != 0:
        files = grown(files, n)
        at = read_classic_file(data, at, header.program, files[n])
        n += at >= 0
    return directories, files[:n]
