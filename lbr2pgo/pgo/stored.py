"""What builds are to use: is there a profile, is it this program's, how stale, how good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lbr2pgo.analyses.quality_verdict import weakest
from lbr2pgo.pgo import NOT_LAID_OUT
from lbr2pgo.profiles.linker.linker_names import names_at
from lbr2pgo.profiles.registry import read_written
from lbr2pgo.profiles.staleness import MOST_STALE, MUCH_STALE, Staleness
from lbr2pgo.program.block_map import open_block_map
from lbr2pgo.program.program import Program
from lbr2pgo.reports.checking import check_recordings
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.errors import InputError

_NAMED = 3
"""Functions that a sentence names."""


@dataclass(frozen=True, slots=True)
class Usability:
    """Whether to build with a profile, and what to tell the user of it."""

    usable: bool
    said: str | None = None
    is_warning: bool = True


def judge(profile: Path, binary: Path, *, for_gcc: bool = False) -> Usability:
    """Look at a profile beside a plain build of the program.

    `for_gcc` wants one that GCC reads. A missing one is not used, a stale one is. Raises InputError
    if it is no sample profile, or does not belong to the program.
    """
    if not profile.exists():
        return Usability(False, f"there is no profile {profile} yet: this is a plain build")
    written, wanted = read_written(profile), "afdo" if for_gcc else "llvm"
    if written is None or written.format != wanted:
        raise InputError(
            "no sample profile for this compiler",
            where=str(profile),
            cure=f"Make one of a recording with lbr2pgo convert --{wanted}.",
        )
    stale = written.staleness(Program.open(binary))
    if stale is None:
        return Usability(True, f"nobody can tell how well {profile} fits: {binary} has no DWARF")
    return _judged(profile, binary, stale)


def refuse_another_program(profile: Path, binary: Path) -> None:
    """Look at a profile of which llvm-bolt carries over what fits, however stale it is.

    Raises InputError if it is none, or another program's.
    """
    written = read_written(profile)
    if written is None:
        cure = "Make one of a recording with lbr2pgo convert --bolt-yaml."
        raise InputError("no profile for BOLT", where=str(profile), cure=cure)
    written.belonging(Program.open(binary), most_stale=1.0)


def judge_recordings(recordings: Sequence[Path], binary: Path) -> Usability:
    """Look at recordings of a build before it is laid out by them: poor ones do harm."""
    remark = weakest(check_recordings(recordings, binary))
    if remark is None or remark.grade.is_worth_using:
        return Usability(True)
    cure = remark.cure.removesuffix(".")
    return Usability(False, f"{NOT_LAID_OUT}{remark.grade.value}: {remark.text}. {cure}")


def judge_layout(recorded: Path, built: Path) -> Usability:
    """Whether the build that clusters of blocks went into has the blocks that were recorded.

    Raises InputError where most functions have others: their layout is by numbers of other blocks.
    """
    functions, differing = compare_blocks(Program.open(recorded), Program.open(built))
    if not differing:
        return Usability(True)
    said = (
        f"{len(differing):,} of {functions:,} functions came out of the compiler with "
        f"other blocks than those recorded ({', '.join(differing[:_NAMED])})"
    )
    if len(differing) > MOST_STALE * functions:
        raise InputError(
            f"laid out by numbers of other blocks: {said}",
            where=str(built),
            cure="Both builds must compile the same sources with the same flags.",
        )
    return Usability(True, said)


def _judged(profile: Path, binary: Path, stale: Staleness) -> Usability:
    stale.refuse(profile, binary)
    if stale.share == 0:
        return Usability(True)
    said = f"{binary} has no place for {stale.share:.2%} of its counts"
    told = f"{profile} is stale: {said}; it is used all the same"
    return Usability(True, told, stale.share > MUCH_STALE)


def compare_blocks(recorded: Program, built: Program) -> tuple[int, list[str]]:
    """How many functions two builds have by one name, and whose blocks have other numbers.

    Raises InputError where one has no block map.
    """
    before, after = _numbers(recorded), _numbers(built)
    common = before.keys() & after.keys()
    return len(common), sorted(name for name in common if before[name] != after[name])


def _numbers(program: Program) -> dict[str, bytes]:
    """The numbers of each function's blocks, in their order; a clone has its block's own."""
    blocks = open_block_map(program.image)
    order = np.lexsort((blocks.identity, blocks.function))
    bounds = np.searchsorted(blocks.function[order], np.arange(len(blocks.entry) + 1))
    identity = blocks.identity[order]
    names, _ = names_at(blocks.entry.tolist(), program.symbols)
    return {
        own[0]: distinct(identity[bounds[i] : bounds[i + 1]]).tobytes()
        for i, own in enumerate(names)
        if own
    }
