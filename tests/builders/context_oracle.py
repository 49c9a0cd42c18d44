"""Calling contexts, found plainly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


def without_repeats(frames: Sequence[object], longest: int = -1) -> list[object]:
    """For lengths from 1 on: of two equal neighbours of that length drop the second."""
    found, length = list(frames), 1
    most = len(found) // 2 if longest < 0 else min(longest, len(found) // 2)
    while length <= most:
        kept: list[object] = []
        at = 0
        while at < len(found):
            window = found[at : at + length]
            if len(window) == length and at >= length and window == found[at - length : at]:
                at += length
            else:
                kept.append(found[at])
                at += 1
        found, most, length = kept, min(most, len(kept) // 2), length + 1
    return found


def shortened(frames: Sequence[object], longest: int = -1, depth: int = -1) -> list[object]:
    """The same, and of what is left the innermost frames only."""
    found = without_repeats(frames, longest)
    return found if depth < 0 else found[len(found) - min(depth, len(found)) :]


@dataclass(frozen=True)
class PlainCode:
    """Instructions by address."""

    kinds: dict[int, str]
    """`call`, `return`, `jump` (which ends the straight line) or `other`."""
    calls: dict[int, int]
    """The call that each return address stands behind."""
    entries: frozenset[int] = frozenset()

    def runs(self, start: int, end: int) -> bool:
        """Whether execution may go straight on from one instruction to another."""
        if OUTSIDE in (start, end):
            return start == end
        passed = [kind for a, kind in self.kinds.items() if start <= a < end]
        return start <= end and not {"jump", "return"} & set(passed)


OUTSIDE = 1


def unwind(
    frames: Sequence[int], entries: Sequence[tuple[int, int]], code: PlainCode, weight: int = 1,
    *, as_llvm: bool = False,
) -> Counter[tuple[object, ...]]:  # fmt: skip
    """Runs and branches of one sample: (callers outermost first, what, start, end)."""
    found: Counter[tuple[object, ...]] = Counter()
    if not frames and as_llvm:
        return found
    stack = call_stack(frames, code)
    entries = [tuple(a if a in code.kinds else OUTSIDE for a in entry) for entry in entries]
    entries = [entry for entry in entries if entry != (OUTSIDE, OUTSIDE)]
    if not as_llvm:
        stack = mended(stack, entries, code)
    is_broken, pointer = False, None
    for source, target in entries:
        if pointer is not None:
            is_broken |= not code.runs(target, pointer)
        if pointer not in (None, OUTSIDE) and code.runs(target, pointer):
            found[known(stack), "run", target, pointer] += weight
        stack = [] if is_broken else before(stack, source, target, code)
        if target != OUTSIDE:
            callers = known(stack) if source != OUTSIDE else ()
            found[callers, "branch", source, target] += weight
        pointer = source
    return found


def call_stack(frames: Sequence[int], code: PlainCode) -> list[int]:
    """Calls above the interrupted instruction, outermost first, as far as the frames are sound."""
    calls: list[int] = []
    was_outside = bool(frames) and frames[0] not in code.kinds
    for frame in frames[1:]:
        if frame in code.calls:
            calls.append(code.calls[frame])
        elif frame in code.kinds:
            break
        elif not was_outside:
            calls.append(OUTSIDE)
        was_outside = frame not in code.calls
    if calls and calls[-1] == OUTSIDE:
        calls.pop()
    return calls[::-1]


def before(stack: list[int], source: int, target: int, code: PlainCode) -> list[int]:
    """The calls on the stack before a branch, given those behind it."""
    kind = kind_of(source, target, code)
    if kind == "call":
        return stack[:-1] if stack and stack[-1] == source else stack
    return [*stack, code.calls.get(target, OUTSIDE)] if kind == "return" else stack


def kind_of(source: int, target: int, code: PlainCode) -> str:
    """What a branch is, by where it comes from or else by where it goes."""
    if source != OUTSIDE:
        return code.kinds[source]
    return "return" if target in code.calls and target not in code.entries else "call"


def mended(stack: list[int], entries: Sequence[tuple[int, ...]], code: PlainCode) -> list[int]:
    """The call stack with callers that only the branch stack shows."""
    seen: list[int] = []
    returned, pointer = 0, None
    for source, target in entries:
        if pointer is not None and not code.runs(target, pointer):
            break
        pointer, kind = source, kind_of(source, target, code)
        if kind == "call" and not returned:
            seen.append(source)
        returned += {"return": 1, "call": -1 if returned else 0}.get(kind, 0)
    if seen and seen[-1] == OUTSIDE:
        seen.pop()
    chain = stack[::-1]
    for lost in range(len(seen) + 1):
        rest = seen[lost:]
        if all(a == b for a, b in zip(chain, rest, strict=False)):
            longer = max(chain, rest, key=len)
            return [*seen[:lost], *longer][::-1]
    raise AssertionError


def known(stack: Sequence[int]) -> tuple[int, ...]:
    """The calls that are not above one from outside."""
    outside = [i for i, call in enumerate(stack) if call == OUTSIDE]
    return tuple(stack[outside[-1] + 1 :] if outside else stack)
