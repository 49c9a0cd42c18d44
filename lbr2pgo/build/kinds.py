"""Kinds of profiles for the compiler: what is recorded, and what tells a place in its code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

ToldBy = Literal["lines", "probes", "contexts"]
"""Source lines, pseudo probes, or these by calling context."""


Layout = Literal["", "bolt", "propeller"]
Refined = Literal["", "both", "again", "hot", "cold", "accurate"]

_PROFILE_FLAGS: dict[Refined, tuple[str, ...]] = {
    "both": (),
    "again": (),
    "hot": ("-mllvm=-profile-summary-cutoff-hot=950000",),
    "cold": ("-mllvm=-profile-summary-cutoff-cold=999900",),
    "accurate": ("-fprofile-sample-accurate",),
}
"""What pays in some programs: other recordings, or flags; figures in docs/which-profile.md."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One of them."""

    told_by: ToldBy
    training: tuple[str, ...] = ()
    """Flags of a build that is only recorded; with none, the plain build is."""
    layout: Layout = ""
    """What lays the build out afterwards."""
    refined: Refined = ""
    """Made of both builds' recordings, of a second generation, or used with other flags."""

    @property
    def name(self) -> str:
        """Fit for a file.

        >>> Kind("lines", layout="bolt").name, Kind("probes", ("-O1",), refined="cold").name
        ('lines+bolt', 'probes-O1-cold')
        """
        refined = f"-{self.refined}" if self.refined else ""
        layout = f"+{self.layout}" if self.layout else ""
        return f"{self.told_by}{''.join(self.training)}{refined}{layout}"

    @property
    def has_probes(self) -> bool:
        """Whether every build of it needs pseudo probes."""
        return self.told_by != "lines"

    @property
    def unlaid(self) -> Kind:
        """What the compiler made at first."""
        return replace(self, layout="")

    @property
    def profile_flags(self) -> tuple[str, ...]:
        """Flags of the build that uses the profile, besides."""
        return _PROFILE_FLAGS.get(self.refined, ())

    def refinements(self) -> list[Kind]:
        """The same kind by whatever may refine it."""
        cant = set[Refined]()
        if not self.training:
            cant.add("both")
        if self.told_by == "contexts":
            cant.add("again")
        return [replace(self, refined=each) for each in _PROFILE_FLAGS if each not in cant]

    def options(self) -> list[str]:
        """Options of `lbr2pgo pgo` for it."""
        told_by = ["--probes"] if self.has_probes else ["--lines"]
        contexts = ["--contexts"] if self.told_by == "contexts" else []
        training = [f"--training-flags={' '.join(self.training)}"]
        refined = [f"--{self.refined}"] if self.refined else []
        if self.profile_flags:
            refined = [f"--profile-flags={' '.join(self.profile_flags)}"]
        return [*told_by, *contexts, *training, *refined]


SHIPPED = Kind("lines"), Kind("probes"), Kind("contexts")
"""Recorded as it is shipped."""
TRAINING_FLAGS = ("-O1",)
"""What keeps code near to its source at a bearable price; figures in docs/which-profile.md."""


def usual_kind(compiler: str, layout: Layout = "") -> Kind:
    """What a loop takes that is told nothing, by the compiler (clang, gcc or rustc)."""
    if compiler != "clang":
        return Kind("lines")
    return Kind("probes" if goes_with_probes(layout) else "lines", TRAINING_FLAGS)


def goes_with_probes(layout: Layout) -> bool:
    """Whether a build with probes can be laid out so: clang 22 writes none in split functions."""
    return layout != "propeller"
