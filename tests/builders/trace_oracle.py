"""The counting rules of DESIGN.md in plain Python, without a table, an array or a loop's state.

Written from the words of "Counting, exactly" and of the formats' quirks, entry by entry and pair by
pair, to judge the compiled loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Entry = tuple[int, int, int]
"""From, to, flags."""
Place = tuple[int, int]
"""Number of the mapping, image address."""
Trace = tuple[int | None, int | None, int | None, bool]
"""From, to, end of the run (None: outside or unknown), whether a branch was seen."""

POISON = 0xFFFFFFFFFFFFFFFE
EXCEPTIONS = (11, 12, 13, 14, 15)  # ERET, IRQ, SERROR, NO_TX, EXTEND_ABI


@dataclass
class Tally:
    """What became of everything: traces with their counts, entries by fate."""

    traces: Counter[Trace] = field(default_factory=Counter)
    mispredicted: Counter[Trace] = field(default_factory=Counter)
    unpredicted: Counter[Trace] = field(default_factory=Counter)
    """Those that say neither that they were predicted nor that they were not."""
    fates: Counter[str] = field(default_factory=Counter)
    gaps: Counter[str] = field(default_factory=Counter)
    """Pairs of neighbours between which no run is known, by what the recorder left out."""


def count_stack(
    stack: Sequence[Entry],
    mode: str,
    find: Callable[[int], Place | None],
    tally: Tally,
    weight: int = 1,
) -> None:
    """Count one stack, newest entry first.

    `mode` is "chains", "branches", "nothing" or "joined".
    """
    if mode == "joined":
        _count_joined(stack, find, tally, weight)
        return
    branches = [entry for entry in stack[:2] if _fate(entry, mode, find) == "counted"]
    if mode == "chains" and _is_recorded_twice(branches):
        tally.fates["duplicate"] += weight
        stack = [stack[0], *stack[2:]]
    joined = _interrupts(stack, mode, find)
    for i, entry in enumerate(stack):
        fate = _fate(entry, mode, find)
        tally.fates[fate] += weight
        newer = stack[i - 1] if i else None
        goes_on = fate in ("counted", "exception") and _place(entry[1], find) is not None
        if newer is not None and mode == "chains" and i - 1 not in joined:
            tally.gaps["interrupted"] += weight * (goes_on and _is_interrupt(newer, mode, find))
        if newer is not None:
            newer_fate = _fate(newer, mode, find)
            tally.gaps["filtered"] += weight * (mode == "branches" and fate == "counted")
            is_abort = mode == "chains" and newer_fate == "counted" and newer[2] >> 3 & 1
            tally.gaps["aborted"] += weight * is_abort
        trace = _trace(entry, fate, _end_of_run(stack, i, joined), mode, find)
        if trace is not None and i not in joined.values():
            tally.traces[trace] += weight
            tally.mispredicted[trace] += weight * bool(entry[2] & 1 and trace[3])
            tally.unpredicted[trace] += weight * bool(not entry[2] & 3 and trace[3])


def _end_of_run(stack: Sequence[Entry], i: int, joined: dict[int, int]) -> Entry | None:
    """The newer neighbour; across an interrupt that behind its return."""
    newer = i - 1
    while newer in joined:
        newer = joined[newer] - 1
    return stack[newer] if i else None


def _is_interrupt(entry: Entry, mode: str, find: Callable[[int], Place | None]) -> bool:
    """Of an instruction of the image; returns from interrupts are none."""
    is_exception = _fate(entry, mode, find) == "exception"
    return is_exception and entry[2] >> 20 & 15 > 11 and _place(entry[0], find) is not None


def _interrupts(
    stack: Sequence[Entry], mode: str, find: Callable[[int], Place | None]
) -> dict[int, int]:
    """Interrupts whose return is in the stack and leads to where they came, with that return."""
    found: dict[int, int] = {}
    for i in range(1, len(stack)) if mode == "chains" else ():
        entry, behind = stack[i], i
        while behind - 1 in found:
            behind = found[behind - 1]
        is_return = entry[2] >> 20 & 15 == 11 and _place(entry[0], find) is None
        is_return &= _fate(entry, mode, find) == "exception"
        end = _run_end(stack[behind - 1], mode, find)
        j = next((j for j in range(i + 1, len(stack)) if _stops(stack[j], find)), None)
        if is_return and end is not None and j is not None:
            meets = _place(stack[j][1], find) is None and stack[j][0] == entry[1]
            if meets and stack[j][0] and stack[j][2] >> 20 & 15 > 11:
                found[j] = i
    return found


def _stops(entry: Entry, find: Callable[[int], Place | None]) -> bool:
    """Whether an entry is more than what the kernel did: of the image, or none at all."""
    touches = any(_place(address, find) is not None for address in entry[:2])
    return touches or entry[:2] == (0, 0)


def _count_joined(
    stack: Sequence[Entry], find: Callable[[int], Place | None], tally: Tally, weight: int
) -> None:
    """All entries are branches, and those that touch the image are neighbours."""
    ends = [(_place(a, find), _place(b, find), flags) for a, b, flags in stack]
    kept = [end for end in ends if end[:2] != (None, None)]
    tally.fates["outside"] += weight * (len(ends) - len(kept))
    tally.fates["counted"] += weight * len(kept)
    for newer, (source, target, flags) in zip([None, *kept], kept, strict=False):
        end = newer[0] if newer and target else None
        trace = (source and source[1], target and target[1], end and end[1], True)
        tally.traces[trace] += weight
        tally.mispredicted[trace] += weight * (flags & 1)
        tally.unpredicted[trace] += weight * (not flags & 3)


def _is_recorded_twice(newest: Sequence[Entry]) -> bool:
    """Whether the two newest entries are one branch, unless a tight loop explains both."""
    if len(newest) < 2 or newest[0][:2] != newest[1][:2]:
        return False
    loops_back_by = newest[0][0] - newest[0][1]
    return not 0 <= loops_back_by < 0x1000


def _fate(entry: Entry, mode: str, find: Callable[[int], Place | None]) -> str:
    source, target, flags = entry
    rules = (
        ("call_stack", mode == "nothing"),
        ("empty", source == 0 and target == 0),
        ("poison", POISON in (source, target)),
        ("wrong_path", flags >> 24 & 3 == 1),
        ("bogus_target", target >> 61 & 1 and not target >> 57 & 1),
        # AMD's reserved bit, in what is a user's address as far as the bits below tell.
        ("bogus_target", target >> 61 & 1 and not target >> 57 & 1),
        ("not_taken", flags >> 33 & 1),
        ("outside", _place(source, find) is None and _place(target, find) is None),
        ("exception", flags >> 20 & 15 in EXCEPTIONS),
    )
    return next((name for name, holds in rules if holds), "counted")


def _place(address: int, find: Callable[[int], Place | None]) -> Place | None:
    """Zero is no address: the recorder did not know."""
    return find(address) if address else None


def _trace(
    entry: Entry, fate: str, newer: Entry | None, mode: str, find: Callable[[int], Place | None]
) -> Trace | None:
    source, target = _place(entry[0], find), _place(entry[1], find)
    end = None if newer is None else _run_end(newer, mode, find)
    if fate not in ("counted", "exception") or target is None or end is None or end[0] != target[0]:
        end = None
    if fate == "counted":
        return (source and source[1], target and target[1], end and end[1], True)
    return (None, target[1], end[1], False) if target and end else None


def _run_end(newer: Entry, mode: str, find: Callable[[int], Place | None]) -> Place | None:
    """Where straight execution that leads to this entry ended, if the entry tells."""
    is_abort = newer[2] >> 3 & 1
    if mode != "chains" or is_abort or _fate(newer, mode, find) != "counted":
        return None
    return _place(newer[0], find)
