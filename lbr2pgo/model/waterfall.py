"""The loss waterfall: what became of every sample, branch and fall-through, step by step.

Branches outside the image also have keys by mapped file, `outside_in/FILE`.

A *tally* is a plain mapping from a key to a number, so that tallies of several files add up. A
step's key is its name below; a loss's key is `step/reason`, where `step` is the one that the
lost things did not reach. `check` asserts that what reached a step and what was lost before it
make up what there was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from lbr2pgo.model.quirks import LOSSES
from lbr2pgo.support.dataclass import dataclass

if TYPE_CHECKING:
    from fractions import Fraction

Tally = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why things were lost, and what the user can do about it."""

    title: str
    cure: str


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the waterfall: what is left of the things of the step before it."""

    key: str
    title: str
    unit: str
    after: str | None
    """The step whose things are filtered here; None where a new unit starts."""
    reasons: Mapping[str, Reason] = field(default_factory=dict)
    """Why things are lost before this step, beside REASONS."""


INFERENCE_STEPS = (
    Step("instructions_mapped", "from processes that map the image", "samples", "samples_selected"),
    Step("instructions_precise", "of precise events (precise_ip above 0)", "samples", None),
    Step("instructions_in_image", "in this image", "samples", "instructions_mapped"),
    Step("instructions_sampled", "at its instructions", "samples", "instructions_in_image"),
    Step("runs_corrected", "of them behind newest branches", "fall-throughs", None),
)
"""Of samples that count where they interrupted the program, and of what no recorder sees."""

STEPS = (
    Step("samples_read", "samples read", "samples", None),
    Step("samples_selected", "chosen by event and process", "samples", "samples_read"),
    Step("samples_with_stack", "with a branch stack", "samples", "samples_selected"),
    Step("samples_mapped", "from processes that map the image", "samples", "samples_with_stack"),
    Step("samples_weighed", "after weights against bias", "samples", None),
    *INFERENCE_STEPS[:-1],
    Step("entries_read", "branch entries in them", "branches", None),
    Step("entries_in_image", "in this image, to infer from", "branches", "entries_read"),
    Step("branches_read", "branch entries in them", "branches", None),
    Step("branches_in_image", "in this image", "branches", "branches_read"),
    Step("runs_in_image", "fall-throughs in this image", "fall-throughs", None),
    INFERENCE_STEPS[-1],
    Step("runs_valid", "valid fall-throughs", "fall-throughs", "runs_in_image"),
    Step("runs_in_function", "attributed to a function", "fall-throughs", "runs_valid"),
)
"""Those of every conversion; what is written adds its own (`profiles.registry.steps`)."""


_COUNTING = ("samples_read", "samples_selected", "samples_with_stack", "samples_mapped",
             "samples_weighed", "instructions_mapped", "instructions_precise",
             "instructions_in_image", "instructions_sampled", "entries_read", "entries_in_image",
             "branches_read", "branches_in_image")  # fmt: skip
"""Steps that are taken before there are counts."""
_COUNTING_KEYS = (
    "runs_in_image/between_pieces",
    "runs_corrected",
    *(f"{loss.step}/{loss.reason}" for loss in LOSSES if loss.step not in _COUNTING),
)
"""What else is known then: fall-throughs that can't be told, and those that no recorder sees."""


REASONS = {
    "other_event": Reason("of another event", "leave out --event to count every event"),
    "other_process": Reason("of another process", "leave out --pid to count every process"),
    "not_chosen": Reason(
        "of other threads, names, processors or times",
        "leave out --tid, --comm, --cpu and --time to count them",
    ),
    "no_stack": Reason(
        "without a branch stack",
        "record with branches (perf record -b -e cycles:u -- CMD), or let lbr2pgo convert --no-lbr "
        "infer them from where the program was interrupted",
    ),
    "no_ip": Reason(
        "that don't say where the program was",
        "record addresses, and print them: perf script -F +ip",
    ),
    "elsewhere": Reason(
        "outside the image",
        "nothing: libraries; convert them with their own --binary (a few on the page behind the "
        "code are an imprecise event's, under a hypervisor above all: record a precise one)",
    ),
    "in_kernel": Reason(
        "in the kernel",
        "nothing, where others are not; else the event counts nothing in user space: record one "
        "that does (instructions:upp)",
    ),
    "no_instruction": Reason(
        "inside an instruction, or outside of all code",
        "check that the binary is the one that was recorded; a few are an imprecise event's: "
        "record a precise one (instructions:upp)",
    ),
    "not_mapped": Reason(
        "from a process that did not map the image",
        "nothing, if other programs ran; else record the program's start too",
    ),
    "dropped": Reason(
        "at the ends of stacks",
        "leave out --drop-newest, --drop-oldest and --correct-bias to count them",
    ),
    "stale": Reason("that this build has no place for", "record this build"),
    "outside": Reason(
        "between addresses outside the image",
        "nothing: libraries and the kernel; convert them with their own --binary",
    ),
    **{loss.reason: Reason(loss.title, loss.cure) for loss in LOSSES},
    "between_pieces": Reason(
        "from one load segment into another",
        "check that the binary is the one that was recorded; else an entry in between is missing",
    ),
    "astray": Reason(
        "that no branch there can have made",
        "check that the binary is the one that was recorded; a few are errors of the recorder, "
        "interrupts, or code that is patched while it runs",
    ),
    "backwards": Reason(
        "that end before they start", "check that the binary is the one that was recorded"
    ),
    "not_an_instruction": Reason(
        "that start or end inside an instruction",
        "check that the binary is the one that was recorded, and that its code is not patched",
    ),
    "crosses_jump": Reason(
        "that run across an unconditional jump, a return or a trap",
        "check that the binary is the one that was recorded, and that text of perf script tells "
        "of a filter or of call stacks (print it with --header)",
    ),
    "crosses_gap": Reason(
        "that run across bytes that are no code",
        "check that the binary is the one that was recorded",
    ),
    "crosses_call": Reason(
        "that run across a call or an indirect jump (--strict)",
        "record all branches, without a filter",
    ),
    "linkage_table": Reason(
        "in the procedure linkage table", "nothing: stubs that lead to other images' functions"
    ),
    "no_function": Reason(
        "in code that no symbol names", "nothing: as assembly and start-up files leave it"
    ),
    "no_symbols": Reason(
        "in code that no symbol names, for there is no symbol table",
        "give a binary with a symbol table (not stripped)",
    ),
    "in_prologue": Reason(
        "whose call stack ends in a prologue or epilogue (--compat llvm-profgen)",
        "leave out --compat: their branch stacks are whole",
    ),
}


def of_instructions(mapped: int, inside: int, in_kernel: int) -> dict[str, int]:
    """A tally of samples by where they are, in the image or else in the kernel."""
    return {
        "instructions_mapped": mapped,
        "instructions_in_image/in_kernel": in_kernel,
        "instructions_in_image/elsewhere": mapped - inside - in_kernel,
        "instructions_in_image": inside,
    }


_OUTSIDE_IN = "outside_in"


def outside_in(files: Mapping[str, int]) -> dict[str, int]:
    """A tally of branches outside the image, by the files that were mapped there."""
    return {f"{_OUTSIDE_IN}/{name}": count for name, count in files.items()}


def counts_outside(tally: Tally) -> dict[str, int]:
    """The files of `outside_in`, and how many branches lie in each."""
    return losses_of(tally, _OUTSIDE_IN)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the printed waterfall."""

    step: Step
    count: int
    before: int | None
    """How many there were before the step; None where a new unit starts."""
    losses: tuple[tuple[Reason, int], ...]
    """Most frequent first."""
    outside: tuple[tuple[str, int], ...] = ()
    """Of branches outside the image: mapped files, most frequent first, and how many lie in each.

    Inputs that are counts already, or that tell no mappings, have none.
    """

    @property
    def share(self) -> float | None:
        """Part of what there was before; None where that is nothing or unknown."""
        return self.count / self.before if self.before else None

    def __repr__(self) -> str:
        return f"<Row {self.count:,} {self.step.title}>"


def merge(*tallies: Tally) -> dict[str, int]:
    """Add tallies up, key by key."""
    total: dict[str, int] = {}
    for tally in tallies:
        for key, count in tally.items():
            total[key] = total.get(key, 0) + count
    return total


def weighed(tally: Mapping[str, Fraction | int], branches: int) -> dict[str, int]:
    """A tally of counting after weights, in whole numbers that add up.

    `branches` are those that the weights left in the image. Losses are rounded down, and what
    there was before a step is what reached it and what was lost.
    """
    found = {key: int(number) for key, number in tally.items()}
    if "branches_in_image" in found:
        found["branches_in_image"] = branches
    for step in reversed(STEPS):
        if step.after in found and step.key in found:
            found[step.after] = found[step.key] + sum(losses_of(found, step.key).values())
    return found


def of_inferred(tally: Tally, branches: int) -> dict[str, int]:
    """The tally of counts from which so many branches were inferred.

    What was recorded has steps of its own then, without the files that hold the rest.
    """
    renamed = {"branches_read": "entries_read", "branches_in_image": "entries_in_image"}
    found = {"branches_in_image": branches}
    for key, count in tally.items():
        step, bar, reason = key.partition("/")
        if step != _OUTSIDE_IN:
            found[renamed.get(step, step) + bar + reason] = count
    return found


def losses_of(tally: Tally, step: str) -> dict[str, int]:
    """Losses before a step, by reason; zero counts left out."""
    prefix = step + "/"
    return {k.removeprefix(prefix): n for k, n in tally.items() if k.startswith(prefix) and n}


def check(tally: Tally, steps: Sequence[Step] = STEPS) -> None:
    """Raise AssertionError unless accepted and rejected make up what was read, at every step."""
    for step in steps:
        if step.after is not None and step.after in tally and step.key in tally:
            accepted, lost = tally[step.key], sum(losses_of(tally, step.key).values())
            assert accepted + lost == tally[step.after], (
                f"{step.key}: {accepted} + {lost} lost != {tally[step.after]} {step.after}"
            )
    in_files = sum(counts_outside(tally).values())
    assert in_files <= tally.get("branches_in_image/outside", 0), "more in files than outside"


def is_sound(tally: Tally) -> bool:
    """Whether a tally that came with saved counts speaks of counting alone, and adds up."""
    keys = [key.partition("/") for key in tally if key not in _COUNTING_KEYS]
    known = (*_COUNTING, _OUTSIDE_IN)
    if not all(
        step in known and (not bar or why in REASONS or step == _OUTSIDE_IN)
        for step, bar, why in keys
    ):
        return False
    try:
        check(tally)
    except AssertionError:
        return False
    return True


def rows(tally: Tally, steps: Sequence[Step] = STEPS) -> tuple[Row, ...]:
    """The waterfall, step by step; steps that the tally does not speak of are left out."""
    found = []
    for step in steps:
        if step.key in tally:
            losses = _by_count(losses_of(tally, step.key))
            before = tally.get(step.after) if step.after else None
            known = {**REASONS, **step.reasons}
            named = tuple((known[reason], count) for reason, count in losses)
            files = counts_outside(tally) if step.key == "branches_in_image" else {}
            found.append(Row(step, tally[step.key], before, named, _by_count(files)))
    return tuple(found)


def _by_count(losses: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Most frequent first."""
    return tuple(sorted(losses.items(), key=lambda item: (-item[1], item[0])))


def row_as_json(row: Row) -> dict[str, object]:
    """One step of the waterfall for scripts."""
    return {
        "step": row.step.key,
        "title": row.step.title,
        "unit": row.step.unit,
        "count": row.count,
        "before": row.before,
        "share": row.share,
        "losses": [{"reason": r.title, "count": n, "cure": r.cure} for r, n in row.losses],
        "outside": dict(row.outside),
    }
