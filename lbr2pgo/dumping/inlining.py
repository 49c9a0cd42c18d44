"""What clang would inline by a sample profile, as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lbr2pgo.profiles.llvm.inlining import InlinedCopy, inlined_copies
from lbr2pgo.profiles.llvm.sample_names import Name, guid
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.llvm.text import context_text
from lbr2pgo.profiles.registry import read_written
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
    return _lines(copies, None if binary is None else _bytes(Program.open(binary)))


def _bytes(program: Program) -> dict[int, int]:
    """Of the functions that have code of their own; names may be hashes in a profile."""
    functions = program.functions
    sizes = (functions.end - functions.start).tolist()
    return {guid(name): size for name, size in zip(functions.name, sizes, strict=True) if name}


def _lines(copies: list[InlinedCopy], sizes: dict[int, int] | None) -> Iterator[str]:
    known = [None if sizes is None else sizes.get(guid(_callee(copy))) for copy in copies]
    yield _row("samples", None if sizes is None else "bytes", "copy")
    for copy, size in zip(copies, known, strict=True):
        shown = None if sizes is None else "-" if size is None else f"{size:,}"
        yield _row(f"{copy.samples:,}", shown, context_text(copy.context))
    functions = len(set(map(_callee, copies)))
    total = f"copies: {len(copies):,}, of {counted(functions, 'function')}"
    if sizes is None:
        yield total
        return
    grown = sum(size for size in known if size is not None)
    yield f"{total}; {grown:,} bytes beside {sum(sizes.values()):,} of all functions"
    if without := known.count(None):
        yield f"of these, {without:,} whose callee has no code of its own to measure"


def _row(samples: str, size: str | None, copy: str) -> str:
    return "  ".join([f"{samples:>12}", *([] if size is None else [f"{size:>8}"]), copy])


def _callee(copy: InlinedCopy) -> Name:
    return copy.context[-1].function
