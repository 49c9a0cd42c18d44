"""Kinds of profiles for the compiler: what is recorded, and what tells a place in its code."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from lbr2pgo.pgo.flags import OVERWRITTEN, UNPROBED

ToldBy = Literal["lines", "probes", "contexts", "instrumented"]
"""Source lines, pseudo probes, or these by calling context; or counters in the program."""

Layout = Literal["", "bolt", "propeller"]
Recorded = Literal["exact", "both", "again"]
Used = Literal[
    "hot", "cold", "accurate", "late", "eager", "overwritten", "expected", "unprobed", "ext-tsp"
]
Refined = Recorded | Used

_RECORDED: tuple[Recorded, ...] = ("exact", "both", "again")
_ALONE: set[Refined] = {"both", "again"}
USED: dict[Used, tuple[str, ...]] = {
    "hot": ("-mllvm=-profile-summary-cutoff-hot=950000",),
    "cold": ("-mllvm=-profile-summary-cutoff-cold=999900",),
    "accurate": ("-fprofile-sample-accurate",),
    "late": ("-mllvm=-disable-sample-loader-inlining",),
    "eager": ("-mllvm=-sample-profile-prioritized-inline=false",),
    "overwritten": OVERWRITTEN,
    "expected": ("-mllvm=-overwrite-existing-weights=false",),
    "unprobed": UNPROBED,
    "ext-tsp": ("-mllvm=-enable-ext-tsp-block-placement",),
}
"""What pays in some programs: other recordings, or flags; figures in docs/notes/which-profile.md.

Where nothing is inlined by the profile as it is read, clang's inliner does it later, of simplified
code. Of eager inlining and the blocks' order, LLVM takes one way for profiles of probes, and
another one for lines (llvm/lib/Transforms/IPO/SampleProfile.cpp,
SampleProfileLoader::doInitialization). So it is with what sources expect of branches, see
`flags.OVERWRITTEN`. It keeps probes, which keep comparisons apart, unless told otherwise.
"""


@dataclass(frozen=True, slots=True)
class ProfileKind:
    """One of them."""

    told_by: ToldBy
    training: tuple[str, ...] = ()
    """Flags of a build that is only recorded; with none, the plain build is."""
    layout: Layout = ""
    """What lays the build out afterwards."""
    refined: tuple[Refined, ...] = ()
    """Made of both builds' recordings, of a second generation, or used with other flags."""

    @property
    def name(self) -> str:
        """Fit for a file.

        >>> ProfileKind("lines", layout="bolt").name
        'lines+bolt'
        >>> ProfileKind("probes", ("-O1",), refined=("cold",)).name
        'probes-O1-cold'
        """
        refined = "".join(f"-{each}" for each in self.refined)
        layout = f"+{self.layout}" if self.layout else ""
        return f"{self.told_by}{''.join(self.training)}{refined}{layout}"

    @property
    def has_probes(self) -> bool:
        """Whether every build of it needs pseudo probes."""
        return self.told_by in ("probes", "contexts")

    @property
    def is_sampled(self) -> bool:
        """Whether branches were recorded for it."""
        return self.told_by != "instrumented"

    @property
    def unrefined(self) -> ProfileKind:
        """As it is made first."""
        return replace(self, refined=())

    @property
    def unlaid(self) -> ProfileKind:
        """What the compiler made at first."""
        return replace(self, layout="")

    @property
    def profile_flags(self) -> tuple[str, ...]:
        """Flags of the build that uses the profile, besides."""
        used = [each for each in USED if each in self.refined]
        return tuple(flag for each in used for flag in USED[each])

    def refinements(self, layout: Layout = "") -> list[ProfileKind]:
        """The same kind by one thing more that may refine it, where that is to be laid out so.

        Merged recordings and second generations go with nothing: what refines them is another
        matter.

        >>> ["".join(each.refined) for each in ProfileKind("probes").refinements("propeller")]
        ['exact', 'hot', 'cold', 'accurate', 'late', 'eager', 'expected', 'unprobed']
        >>> [each.name for each in ProfileKind("probes", refined=("hot", "late")).refinements()][:2]
        ['probes-exact-hot-late', 'probes-hot-cold-late']
        >>> ProfileKind("probes", refined=("again",)).refinements()
        []
        """
        cant = set[Refined](self.refined)
        if self.refined:
            cant |= _ALONE
        if not self.training:
            cant.add("both")
        if self.told_by == "contexts":
            cant |= {"exact", "again", "eager"}
        if self.has_probes:
            cant |= {"overwritten", "ext-tsp"}
            if not keeps_probes(layout):
                cant.add("again")
        else:
            cant |= {"eager", "expected", "unprobed"}
        if not _ALONE.isdisjoint(self.refined):
            return []
        ways = (*_RECORDED, *USED)
        return [self._with({*self.refined, each}) for each in ways if each not in cant]

    def together(self, others: Iterable[ProfileKind]) -> ProfileKind | None:
        """The same kind by all its refinements; None where it is one of them.

        >>> kind = ProfileKind("lines", ("-O1",))
        >>> kind.together(kind.refinements()).name, kind.together(kind.refinements()[:3])
        ('lines-O1-exact-hot-cold-accurate-late-overwritten-ext-tsp', None)
        """
        found = {way for other in others for way in other.refined} - _ALONE
        return self._with(found) if len(found) > len(self.refined) + 1 else None

    def extends(self, other: ProfileKind) -> bool:
        """Whether it is another kind refined further.

        >>> kind = ProfileKind("probes", refined=("hot",))
        >>> [each.extends(kind) for each in (kind, *kind.refinements())][:3]
        [False, True, True]
        """
        return self.unrefined == other.unrefined and {*self.refined} > {*other.refined}

    def _with(self, refined: Collection[Refined]) -> ProfileKind:
        """The same kind refined by so much, each way in its place."""
        ways = tuple(way for way in (*_RECORDED, *USED) if way in refined)
        return replace(self, refined=ways)

    def options(self) -> list[str]:
        """Options of `lbr2pgo pgo` for it."""
        if not self.is_sampled:
            return ["--instrumented"]
        told_by = ["--probes"] if self.has_probes else ["--lines"]
        contexts = ["--contexts"] if self.told_by == "contexts" else []
        training = [f"--training-flags={' '.join(self.training)}"]
        recorded = [f"--{each}" for each in _RECORDED if each in self.refined]
        used = [f"--profile-flags={' '.join(self.profile_flags)}"] if self.profile_flags else []
        return [*told_by, *contexts, *training, *recorded, *used]


SHIPPED = ProfileKind("lines"), ProfileKind("probes"), ProfileKind("contexts")
"""Recorded as it is shipped."""
INSTRUMENTED = ProfileKind("instrumented")
"""What the others are compared with: the program counts, in another build of it."""
TRAINING_FLAGS = ("-O1",)
"""What keeps code near to its source at a bearable price (docs/notes/which-profile.md)."""


def usual_kind(compiler: str, layout: Layout = "") -> ProfileKind:
    """What a loop takes that is told nothing, by the compiler (clang, gcc or rustc)."""
    if compiler != "clang":
        return ProfileKind("lines")
    return ProfileKind("contexts" if keeps_probes(layout) else "lines", TRAINING_FLAGS)


def keeps_probes(layout: Layout) -> bool:
    """Whether builds that are laid out so do; else probes are dropped once read, see `flags`."""
    return layout != "propeller"
