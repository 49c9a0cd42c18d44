"""Where compiled loops are kept on disk, so that only the first run compiles them.

Numba keeps one file a function and takes it for fresh while the function's own file is unchanged,
although other functions and constants are compiled into it. Here one directory holds all loops of
one state of the sources, and nothing of it is used for another state.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import rmtree
from typing import Any

import numba
from llvmlite import binding  # type: ignore[import-untyped]
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.runtime import rtsys

_KERNELS = Path(__file__).parent
_CPU = "NUMBA_CPU_NAME"
CONSTANTS = ("support/arrays.py",)
"""The modules outside this room whose constants are compiled into loops."""
_KEPT = 4
"""Directories kept of other states: other processors, versions and checkouts may share a cache."""

Function = Callable[..., object]


@cache
def sources_stamp() -> str:
    """Hash of everything that compiled loops depend on: sources, compiler, checks, processor."""
    digest = hashlib.blake2b(digest_size=12)
    for path in (*sorted(_KERNELS.glob("*.py")), *(_KERNELS.parent / name for name in CONSTANTS)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    # Loops for a named processor are the same wherever they are compiled, in an image say.
    processor = os.environ.get(_CPU) or binding.get_host_cpu_name()
    for part in (numba.__version__, str(numba.config.BOUNDSCHECK), processor):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def _parents() -> Iterator[Path]:
    """Where the directory may stand: as told, beside the loops, or in the user's cache."""
    told = os.environ.get("NUMBA_CACHE_DIR")
    if told:
        yield Path(told)
        return
    yield _KERNELS / "__pycache__"
    with suppress(RuntimeError):  # there is no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lbr2pgo"


@cache
def directory() -> Path | None:
    """The directory of this state's loops, made if need be; None if none can be made.

    One that cannot be written is used as it is: `lbr2pgo warmup` may have filled it for others.
    Making one removes the oldest of other states.
    """
    for parent in _parents():
        path = parent / f"loops-{sources_stamp()}"
        with suppress(OSError):
            if not path.is_dir():
                path.mkdir(parents=True, exist_ok=True)  # another process may be as far
                _remove_old(parent, path)
            if os.access(path, os.W_OK) or any(path.iterdir()):
                return path
    return None


def _remove_old(parent: Path, new: Path) -> None:
    """Remove all directories of loops but the newest few.

    Each first gets another name, under which no process looks for loops. One that still works
    with it compiles what it finds no more; what can't be removed now is removed another time.
    """
    others = [path for path in parent.glob("loops-*") if path != new]
    for path in sorted(others, key=_age)[_KEPT:]:
        removed = parent / f"loops-removed-{os.getpid()}-{path.name[-24:]}"
        with suppress(OSError):
            path.rename(removed)
            rmtree(removed)


def _age(path: Path) -> float:
    """Grows with the time since a loop was last kept there; what is gone is the oldest."""
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0


class _Locator:
    """Tells Numba where a function's files are (its protocol: numba.core.caching)."""

    _py_file = str(_KERNELS)

    def __init__(self, function: Function) -> None:
        self._module = function.__module__.rpartition(".")[2]

    @classmethod
    def from_function(cls, function: Function, _py_file: str) -> _Locator | None:
        return None if directory() is None else cls(function)

    def ensure_cache_path(self) -> None:
        Path(self.get_cache_path()).mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(directory())

    def get_source_stamp(self) -> str:
        return sources_stamp()

    def get_disambiguator(self) -> str:
        return self._module


class _Files(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class LoopCache(FunctionCache):  # type: ignore[misc]
    """One function's files. What can't be read is compiled, what can't be written is not kept."""

    _impl_class = _Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, or None.

        Numba would prepare for compiling first, which takes longer than to load all loops. They
        only need its memory manager; where one is not kept, the compiler prepares by itself.
        """
        rtsys.initialize(target_context)
        try:
            return self._load_overload(sig, target_context)
        except Exception:  # whatever a damaged file makes of unpickling
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function if that is possible."""
        with suppress(OSError):
            super().save_overload(sig, data)
