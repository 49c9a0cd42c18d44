"""The whole road: profiles and an ELF file in, every wanted output in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lbr2pgo.counting.count import Progress
from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.incomplete import EmptyProfileError, IncompleteError
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.replay.recordings import (
    LLVM_PROFGEN,
    PERF2BOLT,
    Inputs,
    Replayed,
    read_and_replay,
)
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.arrays import Bools
from lbr2pgo.support.errors import InputError, Lbr2pgoError, OutputError
from lbr2pgo.support.output import refuse_overwriting
from lbr2pgo.support.timings import Timings

if TYPE_CHECKING:
    from lbr2pgo.profiles.llvm.profile_table import ProfileTable


@dataclass(frozen=True, slots=True)
class ConvertOptions(Inputs):
    """What to read and what to write; paths of outputs that are None are not written."""

    llvm: Path | None = None
    llvm_format: Literal["text", "extbinary"] = "text"
    md5_names: bool = False
    """Store hashes of names (extbinary only)."""
    symbol_list: bool = False
    """Store the names of all functions (extbinary only)."""
    fdata: Path | None = None
    preaggregated: Path | None = None
    counts: Path | None = None

    def __post_init__(self) -> None:
        Inputs.__post_init__(self)
        if (self.md5_names or self.symbol_list) and self.llvm_format != "extbinary":
            raise InputError(
                "the text format holds neither hashed names nor a symbol list",
                cure="Add --llvm-format extbinary.",
            )
        refuse_overwriting(self.outputs, (*self.profiles, self.binary))

    @property
    def outputs(self) -> tuple[Path, ...]:
        """Every path to be written."""
        every = (self.llvm, self.fdata, self.preaggregated, self.counts)
        return tuple(path for path in every if path is not None)


@dataclass(frozen=True, slots=True)
class Conversion:
    """What was done, what was lost on the way, and what had to be assumed."""

    counts: BranchCounts
    flow: Flow
    tallies: Mapping[str, int]
    """See `waterfall.rows`."""
    notes: tuple[str, ...]
    """Assumptions and damage, a sentence each."""
    written: tuple[Path, ...]


def convert(
    options: ConvertOptions,
    progress: Progress | None = None,
    timings: Timings | None = None,
) -> Conversion:
    """Read, count, replay and write.

    Outputs that can be written are, even if another one can't be: its error is raised after.
    Raises InputError, IncompleteError, and EmptyProfileError instead of writing an empty profile.
    """
    timings = timings or Timings()
    found = read_and_replay(options, progress, timings)
    found.refuse_nothing()
    run = _Run(options, found, timings)
    tallies = waterfall.merge(found.flow.tallies, *run.write_all())
    waterfall.check(tallies)
    notes = (*found.notes, *run.notes)
    if run.problems:
        raise _incomplete(run.problems[0], tallies, notes)
    return Conversion(found.counts, found.flow, tallies, notes, tuple(run.written))


def _incomplete(
    problem: Lbr2pgoError, tallies: Mapping[str, int], notes: Sequence[str]
) -> IncompleteError:
    if isinstance(problem, EmptyProfileError):
        return EmptyProfileError(tallies, notes, problem.what)
    return IncompleteError(problem.what, tallies, notes, problem.cure, problem.where)


class _Run:
    """Writes the outputs of one conversion, one after the other."""

    def __init__(self, options: ConvertOptions, found: Replayed, timings: Timings) -> None:
        self.options, self.program, self.filters = options, found.program, found.filters
        self.counts, self.flow, self.timings = found.counts, found.flow, timings
        self.written: list[Path] = []
        self.problems: list[Lbr2pgoError] = []
        self.notes: list[str] = []

    def write_all(self) -> list[Mapping[str, int]]:
        """Write every wanted output; what can't be written goes to `problems`."""
        outputs = (
            (self.options.counts, self._write_counts),
            (self.options.preaggregated, self._write_preaggregated),
            (self.options.llvm, self._write_llvm),
            (self.options.fdata, self._write_fdata),
        )
        tallies = []
        for path, write in outputs:
            try:
                if path is not None:
                    self.program.image.let_go()  # the code that the stage before looked at
                    tallies.append(write(path))
                    self.written.append(path)
            except Lbr2pgoError as problem:
                self.problems.append(problem)
                if isinstance(problem, EmptyProfileError):
                    tallies.append(problem.tallies)
        return tallies

    def _write_counts(self, path: Path) -> Mapping[str, int]:
        from lbr2pgo.profiles import saved_counts

        with self.timings.stage("write counts"):
            saved_counts.write(self.counts, path)
        return {"traces_written": len(self.counts)}

    def _write_preaggregated(self, path: Path) -> Mapping[str, int]:
        from lbr2pgo.profiles import preaggregated

        with self.timings.stage("write pre-aggregated"):
            preaggregated.write(self.counts, path)
        return {} if self.options.counts else {"traces_written": len(self.counts)}

    def _write_fdata(self, path: Path) -> Mapping[str, int]:
        from lbr2pgo.profiles.bolt import fdata
        from lbr2pgo.profiles.bolt.derive_fdata import BoltOptions, fdata_from_counts

        options = BoltOptions(compat=PERF2BOLT in self.options.compat)
        with self.timings.stage("derive fdata"):
            rows, tallies = fdata_from_counts(self.counts, self.program, options)
        if rows.branches is None or not len(rows.branches):
            raise EmptyProfileError(tallies, what="no branch is in a function that BOLT knows")
        with self.timings.stage("write fdata"):
            fdata.write(rows, path)
        return tallies

    def _write_llvm(self, path: Path) -> Mapping[str, int]:
        from lbr2pgo.profiles.llvm.correlate import profile_table

        if self.filters and not len(self.flow.judged.runs):
            raise OutputError(
                "no sample profile was written: without what ran between branches, clang would "
                f"take all code for cold ({self.filters[0]})",
                cure="Record all branches: perf record -b (without a filter by type).",
            )
        debug = DebugInfo.open(self.program.image)
        if not debug.present:
            raise OutputError(f"no sample profile was written: {debug.missing_reason}")
        with self.timings.stage("correlate"):
            as_llvm = LLVM_PROFGEN in self.options.compat
            table, located = profile_table(self.flow, self.program, debug, as_llvm=as_llvm)
        tallies = self._located_tallies(located)
        if not len(table):
            raise EmptyProfileError(tallies, what="no function with debug information ran")
        with self.timings.stage("write sample profile"):
            self._write_table(table, debug, path)
        self.notes += [f"debug information: {n:,} {why}" for why, n in debug.health().items() if n]
        return tallies

    def _write_table(self, table: ProfileTable, debug: DebugInfo, path: Path) -> None:
        if self.options.llvm_format == "text":
            from lbr2pgo.profiles.llvm import text_table as llvm_text_table

            llvm_text_table.write(table, path)
            return
        from lbr2pgo.profiles.llvm import extbinary as llvm_extbinary
        from lbr2pgo.profiles.llvm.correlate import symbol_list

        profile = table.tree()
        if self.options.symbol_list:
            profile.symbols = symbol_list(debug)
        chosen = llvm_extbinary.Options(md5_names=self.options.md5_names)
        llvm_extbinary.write(profile, path, chosen)

    def _located_tallies(self, located: Bools) -> Mapping[str, int]:
        judged = self.flow.judged
        in_function = judged.valid & (self.program.functions.containing(judged.runs.start) >= 0)
        found = int(judged.runs.count[in_function & located].sum())
        lost = int(judged.runs.count[in_function & ~located].sum())
        return {"runs_located": found, "runs_located/no_location": lost, "llvm_runs": found}
