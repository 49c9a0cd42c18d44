"""What clang would inline by a sample profile, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from lbr2pgo.profiles.llvm.inlining import InlinedCopy, inlined_copies
from lbr2pgo.profiles.llvm.sample_names import Context, Name, guid
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.llvm.text import place_text
from lbr2pgo.profiles.registry import read_written
from lbr2pgo.program.demangle import short_name, without_unique_suffix
from lbr2pgo.program.program import Program
from lbr2pgo.support.counted import counted
from lbr2pgo.support.errors import InputError


def lines(path: Path, function: str | None = None, binary: Path | None = None) -> Iterator[str]:
    """Each copy with its samples and, of functions that the program has, its bytes; then their sum.

    `function` leaves copies of it and in it. Raises InputError for other than LLVM's profiles.
    """
    written = read_written(path)
    if written is None or not isinstance(written.content, SampleProfile):
        raise InputError(
            "is no sample profile of LLVM's, by which clang would inline",
            where=str(path),
            cure="What others hold is shown without --inlining.",
        )
    copies = inlined_copies(written.content)
    if function is not None:
        wanted = guid(function)
        copies = [c for c in copies if any(guid(f.function) == wanted for f in c.context)]
    return _lines(copies, None if binary is None else _Sizes(Program.open(binary)))


class _Sizes:
    """Bytes of the functions that have code of their own."""

    def __init__(self, program: Program) -> None:
        functions = program.functions
        sizes = (functions.end - functions.start).tolist()
        named = [(name, size) for name, size in zip(functions.name, sizes, strict=True) if name]
        self.total = sum(sizes)
        # Names may be hashes in a profile, and those of static functions others in a plain build.
        self._by_guid = {guid(name): size for name, size in named}
        called = [(_shown(name), size) for name, size in named]
        times = Counter(name for name, _ in called)
        self._by_name = {name: size for name, size in called if times[name] == 1}

    def of(self, name: Name) -> int | None:
        """None where there is no such function, or are several."""
        return self._by_guid.get(guid(name), self._by_name.get(_shown(name)))


def _lines(copies: list[InlinedCopy], sizes: _Sizes | None) -> Iterator[str]:
    known = [None if sizes is None else sizes.of(_callee(copy)) for copy in copies]
    yield _row("samples", None if sizes is None else "bytes", "copy")
    for copy, size in zip(copies, known, strict=True):
        shown = None if sizes is None else "-" if size is None else f"{size:,}"
        yield _row(f"{copy.samples:,}", shown, _context(copy.context))
    functions = len(set(map(_callee, copies)))
    total = f"copies: {len(copies):,}, of {counted(functions, 'function')}"
    if sizes is None:
        yield total
        return
    grown = sum(size for size in known if size is not None)
    yield f"{total}; {grown:,} bytes beside {sizes.total:,} of all functions"
    if without := known.count(None):
        yield f"of these, {without:,} whose callee has no code of its own to measure"


def _row(samples: str, size: str | None, copy: str) -> str:
    return "  ".join([f"{samples:>12}", *([] if size is None else [f"{size:>8}"]), copy])


def _context(context: Context) -> str:
    """Functions by their names in the source, so that it fits a line."""
    callers = (f"{_shown(f.function)}:{place_text(f.location)} @ " for f in context[:-1])
    return "".join(callers) + _shown(context[-1].function)


def _shown(name: Name) -> str:
    return short_name(without_unique_suffix(str(name)))


def _callee(copy: InlinedCopy) -> Name:
    return copy.context[-1].function
