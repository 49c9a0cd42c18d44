"""Files that processes write of code that they made, read as perf does.

Anybody can put one under the name of a process into `/tmp`. So one that is merely found has to be
ours or root's, and no link (perf: tools/perf/util/symbol.c, dso__load); one that the user names may
be anybody's.
"""

from __future__ import annotations

import os
from pathlib import Path

from lbr2pgo.support.errors import InputError
from lbr2pgo.support.regular_file import UnfitFileError, read_regular


def read_made(path: Path, most: int, *, is_named: bool) -> bytes:
    """The content of at most so many bytes; raises InputError if it isn't to be read."""
    try:
        if is_named:
            return read_regular(path.resolve(), most)
        return read_regular(path, most, {os.geteuid(), 0})
    except UnfitFileError as error:
        what, cure = f"is not read: it {error}", "If it is trusted, name a plain copy with --jit."
    except (OSError, RuntimeError, ValueError) as error:
        what, cure = f"can't be read: {getattr(error, 'strerror', error)}", "Check the path."
    raise InputError(what, where=str(path), cure=cure)
