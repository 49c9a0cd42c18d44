"""What branch recorders do that a reader has to know: one table, as data.

docs/hardware.md shows it, and counting and the waterfall take from it what can be lost; what stands
in raw registers alone is told where their format is (`sources.quirks` has all). Each quirk is
treated by one pure function, tested where `test` says. A new one that makes entries worthless is a
row here, a function in native/quirks.pxd, and its `Reason`, which native/walk.pxd finds by it.
"""

from __future__ import annotations

from lbr2pgo.support.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Loss:
    """What is lost to quirks."""

    reason: str
    """One of `native.walk.Reason`, in small letters."""
    title: str
    cure: str
    step: str = "branches_in_image"
    """The step of the waterfall that it does not reach."""


@dataclass(frozen=True, slots=True)
class Quirk:
    """One peculiarity of one kind of recorder."""

    name: str
    recorder: str
    seen: str
    """How it shows in the data."""
    done: str
    """What is done about it."""
    code: str
    """`module.function` that does it."""
    source: str
    """Where it is documented."""
    test: str
    """`file::function` of its test."""
    loss: Loss | None = None
    tally: str | None = None
    """Where it is counted though nothing is lost to it."""


_PLANTED = "tests/model/test_quirks.py::"

ABORTED = Loss(
    "aborted",
    "undone by a transaction's abort",
    "nothing: what ran before it did not last",
    step="runs_in_image",
)
_FILTERED = Loss(
    "filtered",
    "that a filtered recording, or one of single branches, can't tell",
    "record all branches: perf record -b",
    step="runs_in_image",
)

QUIRKS = (
    Quirk(
        "unused entries",
        "all",
        "both addresses are 0",
        "dropped; no fall-through across them",
        "native.quirks.is_empty",
        "Linux: arch/x86/events/intel/lbr.c, intel_pmu_lbr_reset_64",
        _PLANTED + "test_planted_entries_are_lost_and_no_others",
        Loss("empty", "empty", "nothing: the recorder left places of the stack unused"),
    ),
    Quirk(
        "repeated newest entry",
        "Intel, Skylake and later",
        "the two newest entries are equal but for their cycles",
        "the copy is dropped, unless a loop of less than 4 KiB explains it",
        "native.quirks.is_duplicate",
        "google/autofdo: sample_reader.cc, strip_dup_backedge_stride_limit; LLVM: "
        "bolt/lib/Profile/DataAggregator.cpp, NeedsSkylakeFix",
        _PLANTED + "test_planted_entries_are_lost_and_no_others",
        Loss(
            "duplicate",
            "copies of the newest entry",
            "nothing: a known fault of the recorder, repaired",
        ),
    ),
    Quirk(
        "transaction abort",
        "Intel with TSX",
        "the abort flag is set",
        "an edge; no fall-through ends at it: what ran before was undone",
        "native.walk.step",
        "Intel SDM vol. 3, Last Branch Records: TSX_ABORT",
        _PLANTED + "test_an_abort_costs_the_line_before_it_and_nothing_else",
        ABORTED,
    ),
    Quirk(
        "call-stack mode",
        "Intel, Haswell and later",
        "branch_sample_type has CALL_STACK",
        "a call tree; no branches, no fall-throughs",
        "counting.branch_filters.kind_of_stacks",
        "Linux: include/uapi/linux/perf_event.h, PERF_SAMPLE_BRANCH_CALL_STACK",
        _PLANTED + "test_a_call_stack_event_beside_a_clean_one_loses_its_own_entries",
        Loss(
            "call_stack",
            "of a call-stack recording",
            "record all branches: perf record -b (without --call-graph lbr, -j call_stack)",
        ),
    ),
    Quirk(
        "branch counters",
        "Intel, Sierra Forest and later",
        "one word more for each entry, behind all of them",
        "kept beside the entries; `lbr2pgo dump stacks` shows them",
        "sources.perf_data.header.with_group_counters",
        "Linux: include/uapi/linux/perf_event.h, PERF_SAMPLE_BRANCH_COUNTERS; perf: "
        "tools/perf/util/evsel.c, evsel__has_branch_counters",
        _PLANTED + "test_branch_counters_cost_nothing",
    ),
    Quirk(
        "wrong path",
        "AMD LbrExtV2 (Zen 4 and later)",
        "the field spec is SPEC_WRONG_PATH",
        "dropped; no fall-through across it",
        "native.quirks.is_wrong_path",
        "Linux: arch/x86/events/amd/lbr.c, amd_pmu_lbr_read",
        _PLANTED + "test_planted_entries_are_lost_and_no_others",
        Loss("wrong_path", "speculative, on a wrong path", "nothing: they were never executed"),
    ),
    Quirk(
        "branch fusion",
        "AMD (Zen 4 and later)",
        "FROM is a compare, and the conditional branch behind it goes where TO says",
        "moved to that branch, with the end of the line before it",
        "replay.fusion.unfused",
        "Linux: arch/x86/events/amd/lbr.c, amd_pmu_lbr_filter",
        _PLANTED + "test_fused_branches_are_found_again",
        tally="branches_fused",
    ),
    Quirk(
        "erratum 1452",
        "AMD LbrExtV2",
        "the reserved bit 61 of TO is set",
        "dropped; not told where a reader before us cut the bit off",
        "native.quirks.is_bogus",
        "AMD: Revision Guide for Family 19h Models 10h-1Fh, erratum 1452; Linux: "
        "arch/x86/events/amd/lbr.c, amd_pmu_lbr_read (v6.9)",
        _PLANTED + "test_planted_entries_are_lost_and_no_others",
        Loss(
            "bogus_target",
            "bogus, by AMD's erratum 1452",
            "nothing: newer kernels leave such entries out",
        ),
    ),
    Quirk(
        "poison",
        "AMD BRS (Zen 3)",
        "an address is 0xfffffffffffffffe, Linux's mark behind valid entries",
        "dropped; no fall-through across it",
        "native.quirks.is_poison",
        "Linux: arch/x86/events/amd/brs.c, amd_brs_poison_buffer",
        _PLANTED + "test_planted_entries_are_lost_and_no_others",
        Loss("poison", "poison", "nothing: unused places of an AMD BRS stack"),
    ),
    Quirk(
        "no cycles",
        "AMD; Intel before Skylake",
        "cycles are 0 in all entries",
        "missing, never zero",
        "evidence.cycle_counts.CycleCollector",
        "Linux: arch/x86/events/amd/lbr.c, struct branch_entry",
        "tests/model/test_quirks.py::test_cycles_that_nobody_recorded_are_missing",
    ),
    Quirk(
        "half records",
        "Arm BRBE",
        "source or target lies in a prohibited region",
        "an edge with one end; a fall-through only there",
        "native.walk.step",
        "Arm ARM, Branch Record Buffer Extension: BRBINF.VALID; Linux: drivers/perf/arm_brbe.c, "
        "perf_entry_from_brbe_regset",
        _PLANTED + "test_half_records_cost_nothing_but_their_unknown_ends",
    ),
    Quirk(
        "interrupts, faults and their returns",
        "Arm BRBE; Intel with types",
        "the type is IRQ, ERET, SERROR or an extended one",
        "no branch; what ran after a return is a fall-through",
        "native.quirks.is_exception",
        "Linux: drivers/perf/arm_brbe.c, brbe_type_to_perf_type_map",
        _PLANTED + "test_planted_entries_are_lost_and_no_others",
        Loss(
            "exception",
            "interrupts, exceptions and their returns",
            "nothing: no branch of the program",
        ),
    ),
    Quirk(
        "runs cut by interrupts",
        "Arm BRBE; Intel with types",
        "an interrupt's FROM is where the program goes on later",
        "joined where the return leads there, without cycles; else not known",
        "native.walk.step",
        "Arm ARM, Branch Record Buffer Extension, preferred exception return address",
        _PLANTED + "test_an_interrupt_without_its_return_costs_the_run_before_it",
        Loss(
            "interrupted",
            "that an interrupt cut, with no return to where it came",
            "nothing: what ran after the interrupt is counted from where it is seen again",
            step="runs_in_image",
        ),
    ),
    Quirk(
        "system calls",
        "Arm BRBE",
        "an SVC's, HVC's or SMC's source is the instruction behind it",
        "moved to the call",
        "counting.system_calls.at_their_instructions",
        "Arm ARM, Branch Record Buffer Extension: BRBINF<n>_EL1.TYPE, preferred exception return "
        "address",
        "tests/counting/test_system_calls.py::test_a_system_call_is_its_instructions",
    ),
    Quirk(
        "single branches",
        "Arm SPE through perf inject",
        "events are named arm_spe…; entries are no neighbours",
        "edges and outcomes, no fall-throughs",
        "counting.branch_filters.kind_of_stacks",
        "perf: tools/perf/util/arm-spe.c, arm_spe__prep_branch_stack",
        "tests/evidence/test_single_branches.py::test_there_are_no_fall_throughs_of_single_branches",
        _FILTERED,
    ),
    Quirk(
        "branches not taken",
        "Arm SPE",
        "the flag NOT_TAKEN, `PN` or `MN` in text; `MN` does not prove a misprediction",
        "no edge: the branch fell through, for the outcomes",
        "native.quirks.is_not_taken",
        "perf: tools/perf/builtin-script.c, bstack_event_str",
        _PLANTED + "test_planted_entries_are_lost_and_no_others",
        Loss("not_taken", "not taken", "nothing: observations of a branch that fell through"),
    ),
    Quirk(
        "branches astray",
        "emulators; interrupts; code that is patched while it runs",
        "TO of a direct branch is not where its instruction goes, or FROM is no branch",
        "lost; what ran on from TO did run",
        "replay.astray.lead_astray",
        "QEMU: docs/devel/tcg-plugins.rst: a block that was begun may be left and begun again",
        "tests/replay/test_astray.py::test_it_is_counted_apart_and_not_as_taken",
        tally="astray",
    ),
    Quirk(
        "filters by type",
        "all",
        "branch_sample_type keeps some kinds of branches (any_call, cond, …)",
        "edges only; no sample profile, since clang would take all code for cold",
        "counting.branch_filters.kind_of_stacks",
        "Linux: include/uapi/linux/perf_event.h, PERF_SAMPLE_BRANCH_*",
        _PLANTED + "test_a_filter_costs_all_lines_and_no_branch",
        _FILTERED,
    ),
    Quirk(
        "no hardware index in empty stacks",
        "Linux",
        "HW_INDEX is set, but empty stacks hold only the 0",
        "every read is bounded by the record's size",
        "sources.perf_data._perf_records.read_samples",
        "Linux: kernel/events/core.c, perf_output_sample",
        _PLANTED + "test_empty_stacks_without_hardware_index_cost_nothing",
    ),
)  # fmt: skip


LOSSES = tuple({quirk.loss.reason: quirk.loss for quirk in QUIRKS if quirk.loss}.values())
"""What can be lost, each once."""
