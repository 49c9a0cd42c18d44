"""llvm-profgen's ranges and branches before symbols: small, and to be converted elsewhere."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lbr2pgo.evidence.contexts.losses import STEPS as UNWINDING
from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.model.waterfall import Reason, Step
from lbr2pgo.profiles.base import Form, Output, OutputFormat, Written, flag, shell_word
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import OutputError

if TYPE_CHECKING:
    from lbr2pgo.evidence.collector import Finding
    from lbr2pgo.model.context_counts import ContextCounts
    from lbr2pgo.profiles.llvm.contexts.keys import NamedContexts

_NO_SYMBOL_BEFORE = Reason(
    "before the first symbol of a section (linkage tables, mostly)",
    "nothing: llvm-profgen does not disassemble them",
)
_RUNS = Step(
    "unsymbolized_runs",
    "written as unsymbolized ranges",
    "fall-throughs",
    "runs_valid",
    {"no_symbol_before": _NO_SYMBOL_BEFORE},
)
CONTEXT_RUNS = Step(
    "unsymbolized_context_runs",
    "written as unsymbolized ranges by context",
    "fall-throughs",
    "context_runs",
    {"no_symbol_before": _NO_SYMBOL_BEFORE},
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

    contexts: Literal["off", "lines", "addresses"] = field(
        default="off",
        metadata=flag(
            "--unsymbolized-contexts",
            "tell ranges apart by who called, named by source lines or, as llvm-profgen does with "
            "pseudo probes, by addresses (off)",
        ),
    )

    @property
    def uses_probes(self) -> bool:
        """See `Output`."""
        return self.contexts == "addresses"

    @property
    def next_step(self) -> str:
        """See `Output`."""
        return f"llvm-profgen --unsymbolized-profile={shell_word(self.path)} --binary ELF -o OUT"

    def findings(self, work: Work) -> tuple[Finding[Any], ...]:
        """See `Output`."""
        from lbr2pgo.profiles.llvm import context_forms

        return () if self.contexts == "off" else context_forms.findings(work)

    def write(self, work: Work) -> Written:
        """See `Output`."""
        return self._write_flat(work) if self.contexts == "off" else self._write_contexts(work)

    def _write_flat(self, work: Work) -> Written:
        from lbr2pgo.model.branch_counts import TO
        from lbr2pgo.profiles.unsymbolized import ranges_text

        with work.writing("unsymbolized"):
            seen = ranges_text.seen_by_llvm(work.flow, work.program)
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
            ranges_text.write(seen, work.program.image.layout, self.path)
        return Written(tallies)

    def _write_contexts(self, work: Work) -> Written:
        from lbr2pgo.profiles.llvm.context_forms import has_chains, unwound

        if not has_chains(work):
            raise OutputError(
                "no unsymbolized contexts were written: there are no call stacks beside the "
                "branch stacks",
                cure="Record them: perf record -b --call-graph fp, or leave out "
                "--unsymbolized-contexts.",
            )
        from lbr2pgo.profiles.unsymbolized import contexts_text

        every = unwound(work)
        seen = contexts_text.seen_by_llvm(every, work.program)
        runs, read = int(seen.runs.count.sum()), every.tallies["context_runs"]
        tallies = {
            **every.tallies,
            CONTEXT_RUNS.key: runs,
            f"{CONTEXT_RUNS.key}/no_symbol_before": read - runs,
        }
        if not runs and not len(seen.branches.count):
            raise EmptyProfileError(tallies, what="no code with symbols ran")
        named = self._named(seen, work)
        with work.writing("unsymbolized"):
            contexts_text.write(named, work.program.image.layout, self.path)
        return Written(tallies)

    def _named(self, seen: ContextCounts, work: Work) -> NamedContexts:
        if self.contexts == "addresses":
            from lbr2pgo.profiles.unsymbolized.contexts_text import by_address

            return by_address(seen, work.program.image.layout)
        if not work.debug.present:
            raise OutputError(f"no contexts were written: {work.debug.missing_reason}")
        from lbr2pgo.profiles.llvm.contexts.line_contexts import LineContexts

        return LineContexts(seen, work.program, work.debug, work.compat).named()


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
    limitations=("no mispredictions", "calling contexts are not read back", "names no build"),
    steps=(_RUNS, _BRANCHES, *UNWINDING, CONTEXT_RUNS),
)
