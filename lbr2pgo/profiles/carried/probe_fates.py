"""What became of each function of a probe profile, from one build to a later one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lbr2pgo.profiles.carried.account import Account, Way
from lbr2pgo.profiles.carried.probe_code import ProbedCode
from lbr2pgo.profiles.carried.probe_flow import ProbeFlow
from lbr2pgo.profiles.carried.probe_map import ProbeMap
from lbr2pgo.profiles.carried.probe_successors import ProbeSuccessors
from lbr2pgo.profiles.carried.sample_carrier import carried_samples
from lbr2pgo.profiles.llvm.sample_names import Location, Name, guid
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile
from lbr2pgo.program.program import Program
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError


def carried_probes(
    profile: SampleProfile, old: Program, new: Program
) -> tuple[SampleProfile, Account]:
    """A profile of the old build's probes for the new one, and what became of its counts.

    Raises InputError for a build without probes.
    """
    for program in (old, new):
        if not program.probes.present:
            cure = "Build it with -fpseudo-probe-for-profiling."
            raise InputError("has no pseudo probes", where=program.image.path, cure=cure)
    fates = ProbeFates(profile, ProbedCode(old), ProbedCode(new))
    return carried_samples(profile, fates), fates.account


@dataclass(frozen=True, slots=True)
class ProbeFate:
    """What became of a function. See `SampleFate`."""

    name: Name
    checksum: int
    is_gone: bool = False
    is_unknown: bool = False
    """Whether the old build lacks the code that the profile tells of."""
    probes: ProbeMap | None = None
    """None where it did not change."""
    flow: ProbeFlow | None = None
    """Of its new code, where that changed."""
    parts: Sequence[ProbeFate] = ()

    def places(self, location: Location) -> tuple[Location, ...]:
        """See `SampleFate`."""
        index, discriminator = location
        if self.is_gone:
            return ()
        to = index if self.probes is None else self.probes.to.get(index)
        return () if to is None else ((to, discriminator),)

    def call_place(self, location: Location, callee: Name) -> Location | None:
        """See `SampleFate`."""
        return next(iter(self.places(location)), None)

    def way(self, location: Location) -> Way:
        """See `SampleFate`."""
        if self.is_unknown:
            return Way.UNKNOWN
        if self.probes is None:
            return Way.LOST if self.is_gone else Way.SAME
        if location[0] in self.probes.sure:
            return Way.PLACE
        is_there = any(each.places(location) for each in (self, *self.parts))
        return Way.CHANGED if is_there else Way.LOST

    def fill(self, body: dict[Location, int]) -> int:
        """Let counts add up, see `SampleFate`.

        A new place that nothing seems to lead to gets none: zero would tell the compiler that it
        is cold, which its own inference knows better.
        """
        if self.probes is None or self.flow is None or not body:
            return 0
        before = sum(body.values())
        copies = {index for index, discriminator in body if discriminator}
        known = {index: count for (index, _), count in body.items() if index not in copies}
        sure = {self.probes.to[index] for index in self.probes.sure}
        for index, count in self.flow.counts(known, sure).items():
            if index not in copies and (count or index in known):
                body[index, 0] = count
        return sum(body.values()) - before


class ProbeFates:
    """See `SampleFates`."""

    def __init__(self, profile: SampleProfile, old: ProbedCode, new: ProbedCode) -> None:
        self.account = Account()
        self._old, self._new = old, new
        self._told = _told(profile)
        self._successors = ProbeSuccessors(old, new, self._told)
        self._found: dict[Name, ProbeFate] = {}

    def of(self, name: Name) -> ProbeFate:
        """See `SampleFates`."""
        if name not in self._found:
            self._found[name] = fate = self._find(name)
            self._note(name, fate)
        return self._found[name]

    def _note(self, name: Name, fate: ProbeFate) -> None:
        if fate.is_gone:
            self.account.gone.add(str(name))
        if fate.name != name:
            self.account.renamed[str(name)] = str(fate.name)
        if fate.parts:
            self.account.split[str(name)] = tuple(str(part.name) for part in fate.parts)

    def _find(self, name: Name) -> ProbeFate:
        number = guid(name)
        there = self._successors.of(number)
        told = self._told.get(number) or self._old.checksum(number)
        if there is None:
            is_known = self._old.has(number)
            return ProbeFate(name, told, is_gone=is_known, is_unknown=not is_known)
        now, checksum = self._name(name, there), self._new.checksum(there)
        if told in (0, checksum):
            return ProbeFate(now, told)
        if self._old.checksum(number) != told or self._new.is_ambiguous(there):
            return ProbeFate(now, told, is_unknown=True)
        probes = self._successors.probes(number)
        parts = tuple(
            self._changed(self._name(name, part), part, pairs)
            for part, pairs in self._successors.split_off(number, probes)
        )
        return self._changed(now, there, probes, parts)

    def _changed(
        self, name: Name, there: int, probes: ProbeMap, parts: Sequence[ProbeFate] = ()
    ) -> ProbeFate:
        flow, checksum = self._new.flow(there), self._new.checksum(there)
        return ProbeFate(name, checksum, probes=probes, flow=flow, parts=parts)

    def _name(self, name: Name, there: int) -> Name:
        """A function's name now, a number where it was one."""
        if there == guid(name):
            return name
        return there if isinstance(name, int) else self._new.name(there)


def _told(profile: SampleProfile) -> Mapping[int, int]:
    """The checksum of each function, by its GUID; 0 of one that only calls another one."""
    callers = (frame for key in profile.functions if isinstance(key, tuple) for frame in key[:-1])
    found: dict[int, int] = {}

    def tell(function: FunctionSamples) -> None:
        found.setdefault(guid(function.name), function.checksum)
        for _, callee in function.inlined():
            tell(callee)

    for function in profile.functions.values():
        tell(function)
    return {**{guid(frame.function): 0 for frame in callers}, **found}
