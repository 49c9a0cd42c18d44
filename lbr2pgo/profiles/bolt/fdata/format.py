"""BOLT's fdata, for the optimizer that works on linked programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.model.waterfall import REASONS, Reason, Step
from lbr2pgo.profiles.base import Form, Output, OutputFormat, Written, flag, readers_in, shell_word
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import OutputError

if TYPE_CHECKING:
    from lbr2pgo.profiles.bolt.fdata.fdata_tables import Fdata

_OUTSIDE = {
    "outside_functions": Reason(
        "outside of all functions", "nothing: no symbol and no unwind table has a function there"
    ),
    "no_symbols": Reason(
        "outside of all functions, for there is no symbol table",
        "give a binary with a symbol table (not stripped)",
    ),
}

_LINE_BREAK = Reason(
    "in functions with a line break in their names", "rename them (objcopy --redefine-sym)"
)


STEPS = (
    Step(
        "fdata_runs",
        "written to fdata",
        "fall-throughs",
        "runs_in_image",
        {
            **_OUTSIDE,
            "two_functions": Reason(
                "from one function into another",
                "check that the binary is the one that was recorded",
            ),
            "line_break": _LINE_BREAK,
            "linkage_table": Reason(
                "in the procedure linkage table", "nothing: BOLT has no blocks there to count"
            ),
            "no_block": Reason(
                "in code that BOLT can't cut into blocks",
                "nothing: BOLT does not optimise such functions",
            ),
            "non_simple": Reason(
                "in functions that are not simple to perf2bolt",
                "leave out --compat perf2bolt to keep them",
            ),
            "backwards": REASONS["backwards"],
            "broken": Reason(
                "that cross blocks which don't follow each other",
                "check that the binary is the one that was recorded",
            ),
        },
    ),
    Step(
        "fdata_branches",
        "branches written to fdata",
        "branches",
        "branches_in_image",
        {
            "returns": Reason(
                "returns, which fdata leaves out", "nothing: BOLT derives them from calls"
            ),
            **_OUTSIDE,
            "line_break": _LINE_BREAK,
        },
    ),
)

SAMPLES = (
    Step(
        "fdata_samples",
        "samples written to fdata",
        "samples",
        "instructions_in_image",
        {**_OUTSIDE, "line_break": _LINE_BREAK},
    ),
)
"""Those of a file of samples, in place of `STEPS`."""


@dataclass(frozen=True, slots=True)
class FdataOutput(Output):
    """Branches between functions, for llvm-bolt."""

    path: Path = field(metadata=flag("--fdata", "profile for llvm-bolt -data"))
    samples: bool = field(
        default=False,
        metadata=flag("--fdata-samples", "of --no-lbr the samples themselves, as perf2bolt -ba"),
    )

    @property
    def next_step(self) -> str:
        """See `Output`."""
        return f"lbr2pgo bolt ELF --fdata {shell_word(self.path)} -o OUT"

    def write(self, work: Work) -> Written:
        """See `Output`."""
        from lbr2pgo.profiles.bolt.fdata import fdata_text

        found = _sampled_fdata(work) if self.samples else work.once(derived_fdata)
        with work.writing("fdata"):
            fdata_text.write(found.rows, self.path)
        return Written(found.tallies)


@dataclass(frozen=True, slots=True)
class Derived:
    """Rows of fdata, and their part of the waterfall."""

    rows: Fdata
    tallies: Mapping[str, int]


def derived_fdata(work: Work) -> Derived:
    """What ran, as BOLT counts it: to be had by `Work.once`.

    Raises EmptyProfileError where BOLT would know no function of it.
    """
    from lbr2pgo.profiles.bolt.fdata.derive_fdata import fdata_from_counts

    with work.timings.stage("derive fdata"):
        rows, tallies = fdata_from_counts(work.counts, work.program, work.compat)
    if rows.branches is None or not len(rows.branches):
        raise EmptyProfileError(tallies, what="no branch is in a function that BOLT knows")
    return Derived(rows, tallies)


def _sampled_fdata(work: Work) -> Derived:
    """The samples that a flow was inferred from; raises OutputError where there are none."""
    from lbr2pgo.profiles.bolt.fdata.derive_fdata import fdata_of_samples
    from lbr2pgo.program.address_translation import has_translation

    samples = work.found.samples
    if samples is None:
        what = "fdata of samples was not written: recorded branches tell more"
        raise OutputError(what, cure="Leave out --fdata-samples, or give --no-lbr.")
    if has_translation(work.program.image):
        what = "fdata of samples was not written: llvm-bolt made this program"
        raise OutputError(what, cure="Leave out --fdata-samples: branches are translated back.")
    events = dict.fromkeys(e.name for source in work.found.sources for e in source.info.events)
    return Derived(*fdata_of_samples(samples, work.program, tuple(events)))


FORMAT = OutputFormat(
    name="fdata",
    suffix=".fdata",
    output=FdataOutput,
    forms=(
        Form("fdata", "BOLT fdata", "perf2bolt writes it", "llvm-bolt"),
        Form(
            "fdata_samples",
            "BOLT fdata of samples (`no_lbr`)",
            "perf2bolt -basic-events writes it",
            "llvm-bolt",
            {"samples": True},
            needs="samples that --no-lbr counts",
        ),
    ),
    references=(
        "LLVM: bolt/lib/Profile/DataAggregator.cpp writeAggregatedFile",
        "LLVM: bolt/lib/Profile/DataReader.cpp",
    ),
    limitations=("needs a symbol table", "returns are left out, as by perf2bolt"),
    steps=(*STEPS, *SAMPLES),
    readers=readers_in("bolt.fdata.written", "FDATA"),
)
