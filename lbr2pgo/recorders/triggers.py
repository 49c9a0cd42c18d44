"""The events on which perf looks at the branch ring, for each recorder.

Sampling on taken branches, not on time, makes every branch as likely to be seen as it is often
taken; a prime period keeps the samples from walking in step with a loop. Where perf may not know
an event's name (it is older than the processor, or was built without event tables) the raw
encoding follows, and cycles last: any event will do to look at the ring.
"""

from __future__ import annotations

from dataclasses import dataclass

from lbr2pgo.recorders.branch_recorder import AMD_BRS, AMD_LBR_V2, ARM_BRBE, RISCV_CTR
from lbr2pgo.recorders.facility import Facility
from lbr2pgo.recorders.machine import Machine, Pmu
from lbr2pgo.recorders.options import PRIVILEGE_FILTERS, RecordOptions

TAKEN_PERIOD = 500_009
"""Default number of taken branches between samples; a prime."""
CYCLES_PERIOD = 2_000_003
"""The same where cycles or instructions trigger; a prime too."""

# BR_INST_RETIRED.NEAR_TAKEN; Atom cores since Gracemont count it under another mask
# (Linux: tools/perf/pmu-events/arch/x86/{alderlake,alderlaken,sierraforest}/pipeline.json).
_TAKEN_UMASK, _ATOM_TAKEN_UMASK = 0x20, 0xC0
_ATOM_MODELS = frozenset({0xBE, 0xAF, 0xB6, 0xDD})
# Atoms and Xeon Phis before that name no such event (silvermont, goldmont: pipeline.json).
_OLD_ATOM_MODELS = frozenset(
    {0x37, 0x4A, 0x4C, 0x4D, 0x5A, 0x5C, 0x5F, 0x7A, 0x86, 0x96, 0x9C, 0x57, 0x85}
)

Events = tuple[str, ...]
"""Events of one recording, one for each PMU."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """Events that trigger together, and how many of them pass between samples."""

    events: Events
    period: int


def find_triggers(
    machine: Machine, facility: Facility, options: RecordOptions
) -> tuple[Trigger, ...]:
    """The triggers that a usable facility can have, the best first."""
    modes = _event_modes(options)
    taken = tuple(
        Trigger(events, options.period or TAKEN_PERIOD)
        for events in _taken_events(machine, facility, modes)
    )
    if facility.recorder is AMD_BRS:
        return taken  # it records with no other event (Linux: amd/brs.c, amd_is_brs_event)
    return (*taken, Trigger((f"cycles:{modes}",), options.period or CYCLES_PERIOD))


def instruction_triggers(machine: Machine, options: RecordOptions) -> tuple[Trigger, ...]:
    """What samples instructions, the best first.

    A precise event that counts instructions has no bias; an imprecise one names instructions
    behind the one that counted, and cycles prefer slow ones.
    """
    modes = _event_modes(options)
    precise = min(map(_precise, machine.pmus), default="")
    words = (f"{name}:{modes}{p}" for name in ("instructions", "cycles") for p in (precise, ""))
    period = options.period or CYCLES_PERIOD
    return tuple(Trigger((event,), period) for event in dict.fromkeys(words))


def _event_modes(options: RecordOptions) -> str:
    """Event modifier for the privilege levels of the filter; user code if it names none."""
    modes = {"u": "u", "k": "k", "hv": "h"}
    return "".join(modes[name] for name in PRIVILEGE_FILTERS if name in options.filters) or "u"


def _taken_events(machine: Machine, facility: Facility, modes: str) -> tuple[Events, ...]:
    """Events that count taken branches."""
    pmus = facility.pmus
    if facility.recorder is AMD_BRS:
        return ((f"{pmus[0].name}/branch-brs/{modes}",),)
    if facility.recorder is AMD_LBR_V2:
        # Event 0xc4 on every Zen. No `p`: precise events go to IBS, which has no branch stack.
        raw = f"{pmus[0].name}/event=0xc4,name=ex_ret_brn_tkn/{modes}"
        return (f"ex_ret_brn_tkn:{modes}",), (raw,)
    if facility.recorder is ARM_BRBE:
        return _arm_events(pmus, modes)
    if facility.recorder is RISCV_CTR:  # its SBI counts all branches, under no own name
        return ()
    return _intel_events(machine, pmus, modes)


def _arm_events(pmus: tuple[Pmu, ...], modes: str) -> tuple[Events, ...]:
    """Retired branches, taken or not: Arm cores name no common event for taken ones."""
    if not all("br_retired" in pmu.events for pmu in pmus):
        return ()
    return (tuple(f"{pmu.name}/br_retired/{modes}" for pmu in pmus),)


def _intel_events(machine: Machine, pmus: tuple[Pmu, ...], modes: str) -> tuple[Events, ...]:
    if machine.cpu.model in _OLD_ATOM_MODELS:
        return ()
    raw = tuple(_intel_raw_event(machine, pmu, modes) for pmu in pmus)
    if pmus[0].name != "cpu":
        return (raw,)  # hybrid: one name stands for different encodings
    return (f"br_inst_retired.near_taken:{modes}{_precise(pmus[0])}",), raw


def _intel_raw_event(machine: Machine, pmu: Pmu, modes: str) -> str:
    atom = pmu.name in ("cpu_atom", "cpu_lowpower") or (
        pmu.name == "cpu" and machine.cpu.model in _ATOM_MODELS
    )
    umask = _ATOM_TAKEN_UMASK if atom else _TAKEN_UMASK
    name = "br_inst_retired.near_taken"
    return f"{pmu.name}/event=0xc4,umask={umask:#x},name={name}/{modes}{_precise(pmu)}"


def _precise(pmu: Pmu) -> str:
    """As many `p` as the PMU grants, three where it doesn't say; guests often have none."""
    return "p" * (3 if pmu.max_precise is None else max(0, min(3, pmu.max_precise)))
