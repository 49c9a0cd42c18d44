"""Calling contexts, found plainly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


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
    """`call`, `return`, `jump` (which ends the fall-through) or `other`."""
    calls: dict[int, int]
    """The call that each return address stands behind."""
    entries: frozenset[int] = frozenset()
    frameless: frozenset[int] = frozenset()
    """Where the frame pointer does not point to the function's frame."""
    functions: Mapping[int, int] = field(default_factory=dict)
    """Of each instruction."""
    callees: Mapping[int, int] = field(default_factory=dict)
    """Functions that calls name."""

    def calls_own(self, leaf: int, frame: int) -> bool:
        """Whether a frame stands behind a call of the function that a leaf is in."""
        callee = self.callees.get(self.calls.get(frame, 0))
        return callee is not None and callee == self.functions[leaf]

    def runs(self, start: int, end: int) -> bool:
        """Whether execution may go straight on from one instruction to another."""
        if OUTSIDE in (start, end):
            return start == end
        passed = [kind for a, kind in self.kinds.items() if start <= a < end]
        return start <= end and not {"jump", "return"} & set(passed)


OUTSIDE = 1


@dataclass(frozen=True)
class PlainSample:
    """Frames innermost first, and (source, target) with the newest first."""

    frames: Sequence[int]
    entries: Sequence[tuple[int, int]]
    weight: int = 1

    def inside(self, code: PlainCode) -> list[tuple[int, int]]:
        """Entries that touch the code, with one address for all that is outside."""
        known = [
            (a if a in code.kinds else OUTSIDE, b if b in code.kinds else OUTSIDE)
            for a, b in self.entries
        ]
        return [entry for entry in known if entry != (OUTSIDE, OUTSIDE)]


def unwind_all(
    samples: Sequence[PlainSample], code: PlainCode, *, as_llvm: bool = False
) -> Counter[tuple[object, ...]]:
    """Runs and branches of all samples: (callers outermost first, what, start, end)."""
    lacks = not as_llvm and lack_callers(samples, code)
    found: Counter[tuple[object, ...]] = Counter()
    for sample in samples:
        if sample.frames or not as_llvm:
            stack = call_stack(sample.frames, code)
            if not as_llvm:
                least = int(lacks and repeats(sample, code))
                stack = mended(stack, sample.inside(code), code, least)
                stack = [] if lacks and is_doubted(sample, code) else stack
            found += unwind(known(stack), sample, code)
    return found


def unwind(
    callers: Sequence[int], sample: PlainSample, code: PlainCode
) -> Counter[tuple[object, ...]]:
    """The same of one sample, whose innermost function has these callers."""
    found: Counter[tuple[object, ...]] = Counter()
    stack, is_broken, pointer = list(callers), False, None
    for source, target in sample.inside(code):
        if pointer is not None:
            is_broken |= not code.runs(target, pointer)
        if pointer not in (None, OUTSIDE) and code.runs(target, pointer):
            found[known(stack), "run", target, pointer] += sample.weight
        stack = [] if is_broken else before(stack, source, target, code)
        if target != OUTSIDE:
            seen = known(stack) if source != OUTSIDE else ()
            found[seen, "branch", source, target] += sample.weight
        pointer = source
    return found


def is_doubted(sample: PlainSample, code: PlainCode) -> bool:
    """Whether a call stack that was found by frame pointers lacks a caller that nothing shows."""
    is_frameless = bool(sample.frames) and sample.frames[0] in code.frameless
    return is_frameless and not open_calls(sample.inside(code), code)


def repeats(sample: PlainSample, code: PlainCode) -> bool:
    """Whether a call stack seems whole where no frame was made, but a function may have called
    itself once more."""
    if not sample.frames or sample.frames[0] not in code.frameless:
        return False
    seen, chain = open_calls(sample.inside(code), code), call_stack(sample.frames, code)[::-1]
    own = code.functions.get(sample.frames[0], -1)
    is_whole = bool(seen and chain) and all(a == b for a, b in zip(chain, seen, strict=False))
    return is_whole and code.functions.get(sample.frames[1], -1) == own


def lack_callers(samples: Sequence[PlainSample], code: PlainCode) -> bool:
    """Whether call stacks lack the innermost caller where no frame was made."""
    whole = lacking = 0
    for sample in samples:
        entries, chain = sample.inside(code), call_stack(sample.frames, code)[::-1]
        if not entries or not sample.frames or sample.frames[0] not in code.frameless:
            continue
        seen = open_calls(entries, code)
        if seen:
            agrees = bool(chain) and all(a == b for a, b in zip(chain, seen, strict=False))
            whole, lacking = whole + sample.weight * agrees, lacking + sample.weight * (not agrees)
        elif sample.frames[1:] and code.calls_own(sample.frames[0], sample.frames[1]):
            whole += sample.weight
    return not whole or whole // 8 < lacking


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


def open_calls(entries: Sequence[tuple[int, int]], code: PlainCode) -> list[int]:
    """Calls in a branch stack that have not returned, innermost first."""
    seen: list[int] = []
    returned, pointer = 0, None
    for source, target in entries:
        if pointer is not None and not code.runs(target, pointer):
            break
        pointer, kind = source, kind_of(source, target, code)
        if kind == "call" and not returned and [source, *seen[-1:]] != [OUTSIDE] * 2:
            seen.append(source)
        returned += {"return": 1, "call": -1 if returned else 0}.get(kind, 0)
    return seen


def mended(
    stack: list[int], entries: Sequence[tuple[int, int]], code: PlainCode, least: int = 0
) -> list[int]:
    """The call stack with callers that only the branch stack shows, of which so many are lost."""
    seen, chain = open_calls(entries, code), stack[::-1]
    for lost in range(least, len(seen) + 1):
        rest = seen[lost:]
        if all(a == b for a, b in zip(chain, rest, strict=False)):
            longer = max(chain, rest, key=len)
            return [*seen[:lost], *longer][::-1]
    raise AssertionError


def known(stack: Sequence[int]) -> tuple[int, ...]:
    """The calls that are not above one from outside."""
    outside = [i for i, call in enumerate(stack) if call == OUTSIDE]
    return tuple(stack[outside[-1] + 1 :] if outside else stack)
