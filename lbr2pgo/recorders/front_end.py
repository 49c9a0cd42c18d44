"""The front ends that the software LBR simulates: their sizes, and what it counts of them.

A processor fetches code by cache lines and pages, and predicts where it goes on. What it lacks
costs cycles, which a linear model adds up: each miss its latency, each misprediction its pipeline,
and nothing overlaps. Prefetches, wrong paths, micro-op caches, data and other threads are left
out, so that cycles only rank builds of one program whose data are the same.
"""

from __future__ import annotations

from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError


@dataclass(frozen=True, slots=True)
class Structure:
    """A cache (lines of 64 bytes), a TLB (pages of 4 KB) or a branch target buffer."""

    entries: int
    ways: int
    penalty: float
    """Cycles of a miss; of a second level, those besides the first one's."""


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """One processor's, as far as it is simulated."""

    name: str
    l1i: Structure
    l2: Structure
    """It holds code alone, which a processor's shares with data."""
    itlb: Structure
    stlb: Structure
    btb: Structure
    returns: int
    """Entries of the return stack."""
    misprediction: float
    """Cycles that a wrong direction, target or return costs."""
    width: float
    """Instructions a cycle, where nothing is missing."""
    taken: float = 0.5
    """Cycles of fetching that a taken branch loses: half of a fetched window, on average, is not
    used."""

    @property
    def plugin_options(self) -> dict[str, str | int]:
        """What the plugin is told."""
        return {
            **{
                name: f"{each.entries}/{each.ways}"
                for name in STRUCTURES
                for each in [self.structure(name)]
            },
            "returns": self.returns,
        }

    def structure(self, name: str) -> Structure:
        """One of `STRUCTURES`."""
        found: Structure = getattr(self, name)
        return found


STRUCTURES = ("l1i", "l2", "itlb", "stlb", "btb")
"""In the order of the plugin's `enum structure`."""


@dataclass(frozen=True, slots=True)
class FrontEndCounts:
    """What one run did in a simulated front end; times that something was missing or wrong."""

    front_end: FrontEnd
    instructions: int
    taken: int
    l1i: int
    l2: int
    itlb: int
    stlb: int
    btb: int
    directions: int
    targets: int
    """Of indirect jumps and calls."""
    returns: int

    @property
    def cycles(self) -> float:
        """An estimate, by the linear model."""
        model = self.front_end
        wrong = self.directions + self.targets + self.returns
        return (
            self.instructions / model.width
            + self.taken * model.taken
            + wrong * model.misprediction
            + sum(self.missed(name) * model.structure(name).penalty for name in STRUCTURES)
        )

    def missed(self, name: str) -> int:
        """One of `MISSES`."""
        found: int = getattr(self, name)
        return found


MISSES = (*STRUCTURES, "directions", "targets", "returns")
"""What is counted besides instructions and taken branches."""

# Sizes. Skylake: Intel 64 and IA-32 Architectures Optimization Reference Manual (248966), "Skylake
# Microarchitecture"; WikiChip, "Skylake (client)". Intel does not give its branch target buffer and
# its penalties: Agner Fog, "The microarchitecture of Intel, AMD and VIA CPUs". Zen 4: AMD, Software
# Optimization Guide for the AMD Zen4 Microarchitecture (57647), "Processor Core": 7 K targets in
# two levels, 11 to 18 cycles of a misprediction. Neoverse N1: Arm Neoverse N1 Core Technical
# Reference Manual (100616), "L1 memory system", "L2 memory system", "MMU"; WikiChip, "Neoverse N1";
# Pellegrini et al., "The Arm Neoverse N1 Platform", IEEE Micro 40(2), 2020, for its 6 K targets.
PRESETS = {
    each.name: each
    for each in (
        FrontEnd(
            "skylake",
            l1i=Structure(512, 8, 12), l2=Structure(4096, 4, 30),
            itlb=Structure(128, 8, 9), stlb=Structure(1536, 12, 26),
            btb=Structure(4096, 4, 8), returns=16, misprediction=16, width=4,
        ),
        FrontEnd(
            "zen4",
            l1i=Structure(512, 8, 14), l2=Structure(16384, 8, 36),
            itlb=Structure(64, 64, 8), stlb=Structure(512, 8, 30),
            btb=Structure(7168, 7, 12), returns=32, misprediction=13, width=6,
        ),
        FrontEnd(
            "neoverse-n1",
            l1i=Structure(1024, 4, 11), l2=Structure(16384, 8, 25),
            itlb=Structure(48, 48, 6), stlb=Structure(1280, 5, 30),
            btb=Structure(6144, 6, 7), returns=16, misprediction=11, width=4,
        ),
    )
}  # fmt: skip
USUAL = {"x86-64": "skylake", "aarch64": "neoverse-n1", "riscv64": "neoverse-n1"}
"""What stands for the processors of an architecture, by its name."""


def preset(name: str) -> FrontEnd:
    """The front end of that name; raises InputError if there is none."""
    if name not in PRESETS:
        raise InputError(
            f"there is no front end {name!r}", cure=f"Choose from {', '.join(PRESETS)}."
        )
    return PRESETS[name]
