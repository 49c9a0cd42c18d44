"""GCC's sample profile, for `gcc -fauto-profile`."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.model.waterfall import Step
from lbr2pgo.profiles.base import Form, Output, OutputFormat, Written, flag, readers_in, shell_word
from lbr2pgo.profiles.llvm.format import debug_notes, refuse_without_runs
from lbr2pgo.profiles.llvm.located import LOCATED, located_runs
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import OutputError

if TYPE_CHECKING:
    from lbr2pgo.evidence.collector import Finding
    from lbr2pgo.profiles.afdo.afdo import GccProfile

_RUNS = Step(
    "afdo_runs",
    "written to the profile for GCC",
    "fall-throughs",
    "runs_in_function",
    {"no_location": LOCATED.reasons["no_location"]},
)


@dataclass(frozen=True, slots=True)
class AfdoOutput(Output):
    """A sample profile for GCC."""

    path: Path = field(metadata=flag("--afdo", "profile for gcc -fauto-profile"))
    version: Literal["1", "2", "3"] = field(
        default="2",
        metadata=flag("--afdo-version", "1: GCC up to 11; 2: GCC 12 to 15 (default); 3: GCC 16"),
    )

    @property
    def next_step(self) -> str:
        """See `Output`."""
        return f"gcc -O2 -g -fauto-profile={shell_word(self.path)}"

    def findings(self, work: Work) -> tuple[Finding[Any], ...]:
        """See `Output`."""
        from lbr2pgo.evidence.first_times import FIRST_TIMES

        return (FIRST_TIMES,) if self.version == "3" else ()

    def write(self, work: Work) -> Written:
        """See `Output`."""
        from lbr2pgo.profiles.afdo import afdo

        refuse_without_runs(work, "GCC")
        if not work.debug.present:
            raise OutputError(f"no profile for GCC was written: {work.debug.missing_reason}")
        profile, tallies = self._profile(work)
        if not profile.samples.functions:
            raise EmptyProfileError(tallies, what="no function with debug information ran")
        with work.writing("profile for GCC"):
            afdo.write(profile, self.path)
        return Written(tallies, tuple(debug_notes(work)))

    def _profile(self, work: Work) -> tuple[GccProfile, dict[str, int]]:
        from lbr2pgo.evidence.first_times import FIRST_TIMES
        from lbr2pgo.profiles.afdo.afdo import GccProfile
        from lbr2pgo.profiles.afdo.gcc_samples import first_seen, gcc_functions, samples_of

        with work.timings.stage("correlate for GCC"):
            given, version = (work.flow, work.program, work.debug), int(self.version)
            named = gcc_functions(*given, version)
            samples, is_located = samples_of(named, *given, version)
            first = work.told(FIRST_TIMES) if self.version == "3" else None
            times = {} if first is None else first_seen(first, named.functions)
        located, lost = located_runs(work, is_located)
        tallies = {_RUNS.key: located, f"{_RUNS.key}/no_location": lost}
        return GccProfile(samples, version, times, named.files), tallies


FORMAT = OutputFormat(
    name="afdo",
    suffix=".afdo",
    output=AfdoOutput,
    forms=(
        Form("afdo", "GCC auto profile", "GCC 12 to 15 read it (version 2)", "gcc -fauto-profile"),
        Form(
            "afdo_1",
            "GCC auto profile, version 1",
            "GCC 11 and older read it; strings are counted in words",
            "gcc -fauto-profile",
            {"version": "1"},
        ),
        Form(
            "afdo_3",
            "GCC auto profile, version 3",
            "GCC 16 reads it; with the time of each function's first sample",
            "gcc -fauto-profile",
            {"version": "3"},
        ),
    ),
    references=("GCC: gcc/auto-profile.cc", "google/autofdo: profile_writer.cc"),
    limitations=(
        "needs debug information",
        "needs all branches, without a filter by type",
        "lines more than 65,535 behind their function's first wrap around, as in GCC",
        "functions of several files that share a name are one before version 3",
    ),
    steps=(_RUNS,),
    readers=readers_in("afdo.written", "AFDO"),
)
