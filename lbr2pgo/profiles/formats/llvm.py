"""LLVM's sample profile, in its text and its extensible binary form."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.model.waterfall import Reason, Step
from lbr2pgo.profiles.formats.base import Form, Output, OutputFormat, Work, Written, flag
from lbr2pgo.support.errors import InputError, OutputError

if TYPE_CHECKING:
    from lbr2pgo.profiles.formats.base import Reader
    from lbr2pgo.profiles.llvm.profile_table import ProfileTable
    from lbr2pgo.profiles.llvm.sample_profile import SampleProfile

LOCATED = Step(
    "runs_located",
    "attributed to a source location",
    "fall-throughs",
    "runs_in_function",
    {
        "no_location": Reason(
            "without a source location",
            "build with -g (or -g1) and -fdebug-info-for-profiling, and give the unstripped binary",
        )
    },
)


@dataclass(frozen=True, slots=True)
class Correlated:
    """The sample profile of what ran, and its part of the waterfall."""

    table: ProfileTable
    tallies: dict[str, int]


def correlated(work: Work) -> Correlated:
    """The sample profile of what ran: to be had by `Work.once`."""
    from lbr2pgo.profiles.llvm.correlate import profile_table
    from lbr2pgo.replay.recordings import LLVM_PROFGEN

    with work.timings.stage("correlate"):
        as_llvm = LLVM_PROFGEN in work.compat
        table, located = profile_table(work.flow, work.program, work.debug, as_llvm=as_llvm)
    judged = work.flow.judged
    in_function = judged.valid & (work.program.functions.containing(judged.runs.start) >= 0)
    found = int(judged.runs.count[in_function & located].sum())
    lost = int(judged.runs.count[in_function & ~located].sum())
    return Correlated(table, {"runs_located": found, "runs_located/no_location": lost})


@dataclass(frozen=True, slots=True)
class LlvmOutput(Output):
    """A sample profile for LLVM's compilers."""

    path: Path = field(metadata=flag("--llvm", "LLVM sample profile"))
    form: Literal["text", "extbinary"] = field(
        default="text", metadata=flag("--llvm-format", "form of the sample profile (text)")
    )
    md5_names: bool = field(
        default=False, metadata=flag("--md5", "store hashes of names (extbinary)")
    )
    symbol_list: bool = field(
        default=False, metadata=flag("--symbol-list", "store all functions' names (extbinary)")
    )

    def __post_init__(self) -> None:
        if (self.md5_names or self.symbol_list) and self.form != "extbinary":
            raise InputError(
                "the text format holds neither hashed names nor a symbol list",
                cure="Add --llvm-format extbinary.",
            )

    def write(self, work: Work) -> Written:
        """See `Output`."""
        _refuse_without_runs(work)
        if not work.debug.present:
            raise OutputError(f"no sample profile was written: {work.debug.missing_reason}")
        from lbr2pgo.profiles.llvm.density import table_density, verdict

        found = work.once(correlated)
        tallies = {**found.tallies, "llvm_runs": found.tallies["runs_located"]}
        if not len(found.table):
            raise EmptyProfileError(tallies, what="no function with debug information ran")
        with work.writing("sample profile"):
            self._write_table(found.table, work)
        health = work.debug.health().items()
        notes = [f"debug information: {n:,} {why}" for why, n in health if n]
        return Written(tallies, (*notes, f"{self.path}: {verdict(table_density(found.table))}"))

    def _write_table(self, table: ProfileTable, work: Work) -> None:
        if self.form == "text":
            from lbr2pgo.profiles.llvm import text_table

            text_table.write(table, self.path)
            return
        from lbr2pgo.profiles.llvm import extbinary
        from lbr2pgo.profiles.llvm.correlate import symbol_list

        profile = table.tree()
        if self.symbol_list:
            profile.symbols = symbol_list(work.debug)
        extbinary.write(profile, self.path, extbinary.Options(md5_names=self.md5_names))


def _refuse_without_runs(work: Work) -> None:
    filters = work.found.filters
    if filters and not len(work.flow.judged.runs):
        raise OutputError(
            "no sample profile was written: without what ran between branches, clang would "
            f"take all code for cold ({filters[0]})",
            cure="Record all branches: perf record -b (without a filter by type).",
        )


def _readers() -> tuple[Reader[SampleProfile], ...]:
    from lbr2pgo.profiles.llvm.written import READERS

    return READERS


FORMAT = OutputFormat(
    name="llvm",
    output=LlvmOutput,
    forms=(
        Form(
            "sample_text",
            "LLVM sample profile, text",
            "LLVM writes it, byte for byte",
            "clang, llvm-profdata",
        ),
        Form(
            "extbinary",
            "LLVM sample profile, extensible binary",
            "LLVM writes it, byte for byte",
            "clang, llvm-profdata",
            {"form": "extbinary"},
        ),
    ),
    references=(
        "LLVM: llvm/include/llvm/ProfileData/SampleProf.h",
        "LLVM: llvm/tools/llvm-profgen/ProfileGenerator.cpp",
    ),
    limitations=("needs debug information", "needs all branches, without a filter by type"),
    steps=(
        LOCATED,
        Step("llvm_runs", "written to the sample profile", "fall-throughs", "runs_located"),
    ),
    readers=_readers,
)
