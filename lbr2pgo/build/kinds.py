"""Kinds of profiles for the compiler: what is recorded, and what tells a place in its code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

ToldBy = Literal["lines", "probes", "contexts"]
"""Source lines, pseudo probes, or these by calling context."""


Layout = Literal["", "bolt", "propeller"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One of them."""

    told_by: ToldBy
    training: tuple[str, ...] = ()
    """Flags of a build that is only recorded; with none, the plain build is."""
    layout: Layout = ""
    """What lays the build out afterwards."""

    @property
    def name(self) -> str:
        """Fit for a file.

        >>> Kind("lines", layout="bolt").name, Kind("probes", ("-O1", "-fno-inline")).name
        ('lines+bolt', 'probes-O1-fno-inline')
        """
        return self.told_by + "".join(self.training) + (f"+{self.layout}" if self.layout else "")

    @property
    def has_probes(self) -> bool:
        """Whether every build of it needs pseudo probes."""
        return self.told_by != "lines"

    @property
    def unlaid(self) -> Kind:
        """What the compiler made at first."""
        return replace(self, layout="")

    def options(self) -> list[str]:
        """Options of `lbr2pgo pgo` for it."""
        told_by = ["--probes"] if self.has_probes else ["--lines"]
        contexts = ["--contexts"] if self.told_by == "contexts" else []
        training = [f"--training-flags={' '.join(self.training)}"]
        return [*told_by, *contexts, *training]


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
