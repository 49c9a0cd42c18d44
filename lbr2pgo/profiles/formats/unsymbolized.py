"""llvm-profgen's ranges and branches before symbols: small, and to be converted elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.model.waterfall import Reason, Step
from lbr2pgo.profiles.formats.base import (
    Form,
    Output,
    OutputFormat,
    Work,
    Written,
    flag,
    shell_word,
)

_RUNS = Step(
    "unsymbolized_runs",
    "written as unsymbolized ranges",
    "fall-throughs",
    "runs_valid",
    {
        "no_symbol_before": Reason(
            "before the first symbol of a section (linkage tables, mostly)",
            "nothing: llvm-profgen does not disassemble them",
        )
    },
)
_BRANCHES = Step(
    "unsymbolized_branches",
    "branches written unsymbolized",
    "branches",
    "branches_in_image",
    {
        "to_elsewhere": Reason(
            "to what llvm-profgen does not disassemble",
            "nothing: libraries and linkage tables, mostly",
        )
    },
)


@dataclass(frozen=True, slots=True)
class UnsymbolizedOutput(Output):
    """Ranges and branches by offset, for llvm-profgen."""

    path: Path = field(
        metadata=flag("--unsymbolized", "ranges for llvm-profgen --unsymbolized-profile")
    )

    @property
    def next_step(self) -> str:
        """See `Output`."""
        return f"llvm-profgen --unsymbolized-profile={shell_word(self.path)} --binary ELF -o OUT"

    def write(self, work: Work) -> Written:
        """See `Output`."""
        from lbr2pgo.model.branch_counts import TO
        from lbr2pgo.profiles import unsymbolized

        with work.writing("unsymbolized"):
            seen = unsymbolized.seen_by_llvm(work.flow, work.program)
            is_written = seen.branches.known & TO != 0
            runs, branches = seen.runs.count.sum(), seen.branches.count[is_written].sum()
            tallies = {
                _RUNS.key: int(runs),
                f"{_RUNS.key}/no_symbol_before": work.flow.tallies["runs_valid"] - int(runs),
                _BRANCHES.key: int(branches),
                f"{_BRANCHES.key}/to_elsewhere": int(seen.branches.count[~is_written].sum()),
            }
            if not runs and not branches:
                raise EmptyProfileError(tallies, what="no code with symbols ran")
            unsymbolized.write(seen, work.program.image.layout, self.path)
        return Written(tallies)


FORMAT = OutputFormat(
    name="unsymbolized",
    suffix=".ranges",
    output=UnsymbolizedOutput,
    forms=(
        Form(
            "unsymbolized",
            "unsymbolized ranges and branches",
            "llvm-profgen --skip-symbolization writes it, byte for byte",
            "llvm-profgen, lbr2pgo",
        ),
    ),
    references=(
        "LLVM: llvm/tools/llvm-profgen/PerfReader.cpp writeUnsymbolizedProfile",
        "LLVM: llvm/tools/llvm-profgen/ProfiledBinary.cpp disassemble",
    ),
    limitations=("no mispredictions", "no calling contexts", "names no build"),
    steps=(_RUNS, _BRANCHES),
)
