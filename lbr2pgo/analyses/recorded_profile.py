"""A recording as a profile: the written ones that it would be, each made when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lbr2pgo.analyses.quality import recorded_conservation
from lbr2pgo.profiles.bolt.fdata.written import FDATA
from lbr2pgo.profiles.linker.function_order import function_flow
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.llvm.written import TEXT
from lbr2pgo.profiles.reader import Profile, Ran, WrittenProfile
from lbr2pgo.profiles.staleness import Staleness
from lbr2pgo.profiles.work import Work
from lbr2pgo.program.program import Program
from lbr2pgo.replay.contradicted import contradictions
from lbr2pgo.replay.replayed import Replayed
from lbr2pgo.support.arrays import U64
from lbr2pgo.support.timings import Timings


@dataclass
class RecordedProfile(Profile):
    """A replayed recording."""

    found: Replayed
    recorded: Program
    """What was recorded; any other program is another build."""
    known_bias: float | None = None
    """See `stack_ends.position_bias`."""
    known_executed: float | None = None
    """See `evidence.interrupted`."""
    _work: Work = field(init=False)

    def __post_init__(self) -> None:
        self._work = Work(self.found, Timings())

    @cached_property
    def _samples(self) -> SampleProfile | None:
        return TEXT.derived(self._work, None)

    @property
    def samples(self) -> SampleProfile | None:
        """What `convert` would write; None if there can't be one."""
        return self._samples

    @property
    def counted(self) -> U64 | None:
        """Those of the best form."""
        return next(self.forms()).counted

    @property
    def conservation(self) -> float | None:
        """See `Profile`."""
        return recorded_conservation(self.found.flow, self.found.program)

    @property
    def bias(self) -> float | None:
        """See `Profile`."""
        return self.known_bias

    @property
    def executed(self) -> float | None:
        """See `Profile`."""
        return self.known_executed

    @cached_property
    def ran(self) -> Ran:
        """See `Profile`."""
        functions = self.found.program.functions
        flow = function_flow(self.found.flow, functions)
        names = map(functions.aliases, flow.function.tolist())
        return tuple(zip(names, flow.weight.tolist(), strict=True))

    @property
    def functions(self) -> frozenset[str]:
        """See `Profile`."""
        return frozenset(name for names, _ in self.ran for name in names)

    def staleness(self, program: Program) -> Staleness | None:
        """What contradicts the recorded program; in another, what the best form lacks."""
        if program is self.recorded:
            return Staleness(contradictions(self.found.flow), 0.0)
        return next(self.forms()).staleness(program)

    def forms(self) -> Iterator[WrittenProfile[Any]]:
        """See `Profile`."""
        if self.samples is not None:
            yield self._written("llvm", TEXT, self.samples)
        yield self._written("fdata", FDATA, FDATA.derived(self._work, None))

    def in_form_of(self, other: WrittenProfile[Any]) -> WrittenProfile[Any] | None:
        """See `Profile`."""
        made = other.reader.derived(self._work, other.content)
        return None if made is None else self._written(other.format, other.reader, made)

    def _written(self, format: str, reader: Any, content: Any) -> WrittenProfile[Any]:
        return WrittenProfile(Path(self.found.sources[0].info.path), format, reader, content)
