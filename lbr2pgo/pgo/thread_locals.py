"""Thread-local variables of C++, whose wrappers clang inlines in no build with a sample profile.

What may have to be made first, as another file's `thread_local int level`, is reached through a
function of clang's, `_ZTW5level`. That has no attribute "use-sample-profile", as all others have,
and those that differ in it are never inlined into each other (clang 22: clang/lib/CodeGen/
ItaniumCXXABI.cpp, getOrCreateThreadLocalWrapper; llvm/include/llvm/IR/Attributes.td, CompatRule).
What is to be inlined always is, so flags say so by name.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path

from lbr2pgo.pgo.flags import WantedFlags
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.symbols import thread_local_names

_MANGLED = "_Z"
_UNWRAPPED = "_ZZ", "_ZG", "__tls_guard"
"""What functions keep, and what says whether something is made already."""


def inlined_wrappers(program: Image) -> tuple[str, ...]:
    """Flags for clang, by the variables that a program has; a name that a file lacks is no error.

    Raises InputError as `thread_local_names`.
    """
    names = (name for name in thread_local_names(program) if not name.startswith(_UNWRAPPED))
    flags = (("-mllvm", f"-force-attribute={_wrapper(name)}:alwaysinline") for name in names)
    return tuple(chain.from_iterable(flags))


def _wrapper(name: str) -> str:
    """The function's symbol, by that of the variable; one of no namespace is not mangled.

    >>> _wrapper("level"), _wrapper("_ZN3app5levelE")
    ('_ZTW5level', '_ZTWN3app5levelE')
    """
    if name.startswith(_MANGLED):
        return f"_ZTW{name.removeprefix(_MANGLED)}"
    return f"_ZTW{len(name)}{name}"


def with_inlined_wrappers(wanted: WantedFlags, program: Path) -> WantedFlags:
    """The same for a program that was built before; by counters, clang inlines them unasked.

    Raises InputError as `Image.open` and `inlined_wrappers`.
    """
    if wanted.compiler != "clang" or wanted.counts is not None:
        return wanted
    return replace(wanted, use=(*inlined_wrappers(Image.open(program)), *wanted.use))
