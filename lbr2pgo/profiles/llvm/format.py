"""LLVM's sample profile, in its text and its extensible binary form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lbr2pgo.model.doubts import counted
from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.model.waterfall import Step
from lbr2pgo.profiles.base import Form, Output, OutputFormat, Written, flag, readers_in, shell_word
from lbr2pgo.profiles.llvm.context_forms import HAS_LINE_BREAK, LINE_BREAK
from lbr2pgo.profiles.llvm.context_forms import STEPS as CONTEXTS
from lbr2pgo.profiles.llvm.located import LOCATED, correlated, in_function, probed
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError, OutputError

if TYPE_CHECKING:
    from lbr2pgo.evidence.collector import Finding
    from lbr2pgo.profiles.llvm.contexts.context_profile import ContextProfile
    from lbr2pgo.profiles.llvm.profile_table import ProfileTable
    from lbr2pgo.support.addresses import PlacedAddresses
    from lbr2pgo.support.arrays import U64, Bools


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
    cold_symbols: bool = field(
        default=False,
        metadata=flag(
            "--cold-symbols",
            "store names of functions that never ran, but for those that code that ran leads to in "
            "two calls (extbinary)",
        ),
    )
    probes: Literal["auto", "on", "off"] = field(
        default="auto",
        metadata=flag("--probes", "count by pseudo probes, where there are any (auto)"),
    )
    contexts: Literal["auto", "nested", "full", "off"] = field(
        default="auto",
        metadata=flag(
            "--contexts",
            "tell functions apart by who called them, where samples have call stacks: nested "
            "into functions (auto, where call stacks were asked for), or each for itself (full)",
        ),
    )
    max_context_depth: int | None = field(
        default=None, metadata=flag("--max-context-depth", "callers that contexts keep (all)")
    )
    max_recursion: int | None = field(
        default=None,
        metadata=flag(
            "--max-recursion",
            "longest round of calls of which a context shows one only (any); 0: show recursion",
        ),
    )

    stable: bool = field(
        default=False,
        metadata=flag(
            "--stable", "to be committed: functions by name, counts in steps of five digits"
        ),
    )

    vtables: bool = field(
        default=False,
        metadata=flag("--vtables", "with the virtual tables that code loads from"),
    )

    def __post_init__(self) -> None:
        if self.stable and self.form != "text":
            raise InputError("--stable is text", cure="Leave out --llvm-format.")
        if self.symbol_list and self.cold_symbols:
            raise InputError(
                "--symbol-list has all that --cold-symbols has", cure="Leave one of them out."
            )
        if (self.md5_names or self.symbol_list or self.cold_symbols) and self.form != "extbinary":
            raise InputError(
                "the text format holds neither hashed names nor a symbol list",
                cure="Add --llvm-format extbinary.",
            )

    @property
    def uses_probes(self) -> bool:
        """See `Output`."""
        return self.probes != "off"

    @property
    def next_step(self) -> str:
        """See `Output`."""
        return f"clang -O2 -g -fprofile-sample-use={shell_word(self.path)}"

    def findings(self, work: Work) -> tuple[Finding[Any], ...]:
        """See `Output`."""
        from lbr2pgo.profiles.llvm import context_forms

        asked = context_forms.findings(work) if self._looks_for_contexts(work) else ()
        if not self.vtables:
            return asked
        from lbr2pgo.evidence.vtable_loads import VTABLE_LOADS

        return (*asked, VTABLE_LOADS)

    def write(self, work: Work) -> Written:
        """See `Output`."""
        return self.made(work)()

    def made(self, work: Work) -> Callable[[], Written]:
        """See `Output`."""
        refuse_without_runs(work, "clang")
        by_probes = self._is_by_probes(work)
        is_by_context = self._is_by_context(work)
        made = self._made_by_context if is_by_context else self._made_flat
        return made(work, by_probes=by_probes)

    def _made_flat(self, work: Work, *, by_probes: bool) -> Callable[[], Written]:
        found = work.once(probed if by_probes else correlated)
        tallies = {**found.tallies, "llvm_runs": found.tallies["runs_located"]}
        table = found.table
        if self.form == "text" and (is_broken := _line_breaks(table.names)).any():
            table, runs = table.without_functions(is_broken), work.flow.judged.runs
            held = in_function(work) & found.is_located
            _count_lost(tallies, "llvm_runs", runs.start[held], runs.count[held], work)
        if not len(table):
            raise _nothing(tallies, by_probes=by_probes)
        if self.vtables:
            from lbr2pgo.profiles.llvm.vtables import with_vtables

            table = with_vtables(table, work)
        says_density = not work.found.is_inferred  # else counts are no samples
        return self._writing(
            table, work, tallies, found.notes, by_probes=by_probes, says_density=says_density
        )

    def _made_by_context(self, work: Work, *, by_probes: bool) -> Callable[[], Written]:
        from lbr2pgo.profiles.llvm import context_forms

        profile = context_forms.context_profile(
            work, self.max_context_depth, self.max_recursion, by_probes=by_probes,
            is_nested=self.contexts != "full", with_vtables=self.vtables,
        )  # fmt: skip
        tallies = dict(context_forms.tallies(work, by_probes=by_probes))
        if self.form == "text" and (is_broken := _line_breaks(profile.names)).any():
            profile = profile.without_functions(is_broken)
            runs = context_forms.located_runs(work, by_probes=by_probes)
            _count_lost(tallies, "llvm_context_runs", *runs, work)
        if not len(profile):
            raise _nothing(tallies, by_probes=by_probes)
        notes = tuple(context_forms.notes(work)) if by_probes else ()
        return self._writing(profile, work, tallies, notes, by_probes=by_probes, says_density=True)

    def _writing(
        self, made: ProfileTable | ContextProfile, work: Work, tallies: Mapping[str, int],
        notes: tuple[str, ...], *, by_probes: bool, says_density: bool,
    ) -> Callable[[], Written]:  # fmt: skip
        """What writes a profile that was made, and may say how dense it is."""
        symbols = self._symbols(work, by_probes=by_probes)
        notes = (*notes, *_notes(work, by_probes=by_probes))

        def write() -> Written:
            with work.writing("sample profile"):
                self._write_table(made, symbols, is_exact=work.is_exact)
            density = (f"{self.path}: {_density(made)}",) if says_density else ()
            return Written(tallies, (*notes, *density))

        return write

    def _symbols(self, work: Work, *, by_probes: bool) -> frozenset[str] | None:
        if not (self.symbol_list or self.cold_symbols):
            return None
        names = _all_functions(work, by_probes=by_probes)
        if self.symbol_list:
            return names
        from lbr2pgo.profiles.llvm.cold_symbols import cold_symbols

        return cold_symbols(names, work.flow, work.program)

    def _is_by_context(self, work: Work) -> bool:
        """Raises OutputError if contexts are asked for that samples don't tell."""
        from lbr2pgo.profiles.llvm.context_forms import has_chains

        if not self._looks_for_contexts(work):
            return False
        is_told = has_chains(work)
        if not is_told and self.contexts != "auto":
            raise OutputError(
                "no sample profile was written: there are no call stacks beside the branch stacks",
                cure="Record them: perf record -b --call-graph fp, or leave out --contexts.",
            )
        return is_told

    def _looks_for_contexts(self, work: Work) -> bool:
        if self.contexts == "auto":
            return any(source.info.wants_contexts for source in work.found.sources)
        return self.contexts != "off"

    def _is_by_probes(self, work: Work) -> bool:
        """Raises OutputError if the program lacks what it takes."""
        if self.probes != "off" and work.program.probes.present:
            return True
        if self.probes == "on":
            raise OutputError(
                "no sample profile was written: the program has no pseudo probes",
                cure="Build it with -fpseudo-probe-for-profiling, or leave out --probes on.",
            )
        if not work.debug.present:
            raise OutputError(f"no sample profile was written: {work.debug.missing_reason}")
        return False

    def _write_table(
        self, table: ProfileTable | ContextProfile, symbols: frozenset[str] | None,
        *, is_exact: bool,
    ) -> None:  # fmt: skip
        if self.form == "text" and not (self.stable or self.vtables):
            from lbr2pgo.profiles.llvm import text_table

            text_table.write(table, self.path)
            return
        profile = table.tree()
        if self.form == "text":
            from lbr2pgo.profiles.llvm import stable, text

            is_rounded = self.stable and not is_exact
            profile = stable.in_steps(profile) if is_rounded else profile
            text.write(profile, self.path, by_name=self.stable)
            return
        from lbr2pgo.profiles.llvm import extbinary

        profile.symbols = symbols
        extbinary.write(profile, self.path, extbinary.Options(md5_names=self.md5_names))


def _density(made: ProfileTable | ContextProfile) -> str:
    from lbr2pgo.profiles.llvm.contexts.context_profile import ContextProfile
    from lbr2pgo.profiles.llvm.density import table_density, verdict

    table = made.apart() if isinstance(made, ContextProfile) else made
    return verdict(table_density(table))


def _nothing(tallies: Mapping[str, int], *, by_probes: bool) -> EmptyProfileError:
    what = "pseudo probes" if by_probes else "debug information"
    return EmptyProfileError(tallies, what=f"no function with {what} ran")


def _line_breaks(names: Sequence[str]) -> Bools:
    """(n,): which names the text form can't hold."""
    from lbr2pgo.support.texts import Texts

    return Texts.of(names).holding(b"\n")


def _count_lost(
    tallies: dict[str, int], step: str, start: PlacedAddresses, count: U64, work: Work
) -> None:
    """Note the fall-throughs, by where they begin, that are lost with functions of such names.

    Those of the functions themselves are; what is inlined elsewhere has only part of one.
    """
    import numpy as np

    from lbr2pgo.profiles.llvm.counted_code import starts

    known = work.debug.functions_for(starts(work.flow))
    names = [known.names[i] for i in known.function.tolist()]
    is_lost = np.append(_line_breaks(names), False)[known.containing(start)]
    lost = int(count[is_lost].sum())
    tallies |= {step: tallies[step] - lost, f"{step}/{LINE_BREAK}": lost}


def _all_functions(work: Work, *, by_probes: bool) -> frozenset[str]:
    """Names of all functions in the binary, which tell a cold function from a new one."""
    if by_probes:
        from lbr2pgo.profiles.llvm.probe_functions import function_names

        return function_names(work.debug, work.program.probes.symbols)
    return frozenset(work.debug.functions().names)


def _notes(work: Work, *, by_probes: bool) -> Iterator[str]:
    """What of the program could not be used."""
    yield from debug_notes(work)
    if by_probes:
        yield from counted(work.program.probes.health())


def debug_notes(work: Work) -> Iterator[str]:
    """What of the debug information could not be used."""
    return counted(work.debug.health(), "debug information")


def refuse_without_runs(work: Work, compiler: str) -> None:
    """Raise OutputError where single branches alone were recorded."""
    filters = work.found.filters
    if filters and not len(work.flow.judged.runs):
        raise OutputError(
            f"no sample profile was written: without what ran between branches, {compiler} would "
            f"take all code for cold ({filters[0]})",
            cure="Record all branches: perf record -b (without a filter by type); or let --infer "
            "say what must have run between them.",
        )


FORMAT = OutputFormat(
    name="llvm",
    suffix=".prof",
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
    limitations=(
        "needs debug information or pseudo probes",
        "needs all branches, without a filter by type",
    ),
    steps=(
        LOCATED,
        Step(
            "llvm_runs",
            "written to the sample profile",
            "fall-throughs",
            "runs_located",
            {LINE_BREAK: HAS_LINE_BREAK},
        ),
        *CONTEXTS,
    ),
    readers=readers_in("llvm.written", "BINARY", "TEXT"),
)
