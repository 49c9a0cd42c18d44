"""Which lines of a function are which in its later form.

Lines that are the same, in the same order, are found first. Between them, words are: a line that
was split, joined with another or changed in a part goes on with those that hold most of its words.
What is left may have moved, and is told by its text, or by what it calls.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence, Set
from difflib import SequenceMatcher

from lbr2pgo.support.dataclass import dataclass

_WORD = re.compile(r"\w+")
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")
_BRACES = frozenset(("", "{", "}", "};", "});", "else", "} else {"))
"""Lines that are everywhere: they follow their neighbours."""
_MOST_WORDS = 4000
"""Of a stretch that changed, beyond which its words are not compared."""
_SAME = 0.5
"""Share of a line's words beyond which it is the same line; in its place that many are enough."""


@dataclass(frozen=True, slots=True)
class LineMap:
    """Of offsets from the start of a function, to those in its later form."""

    kept: Mapping[int, int]
    """Lines that read as before."""
    changed: Mapping[int, tuple[int, ...]]
    """Lines that changed, and what became of them."""

    def to(self, offset: int) -> tuple[int, ...]:
        """Where a line is now; nowhere if it is gone."""
        there = self.kept.get(offset)
        return self.changed.get(offset, ()) if there is None else (there,)

    def of(self, offsets: Iterable[int]) -> LineMap:
        """The same for some lines alone."""
        wanted = frozenset(offsets)
        return LineMap(
            {line: to for line, to in self.kept.items() if line in wanted},
            {line: to for line, to in self.changed.items() if line in wanted},
        )


def line_map(old: Sequence[str], new: Sequence[str]) -> LineMap:
    """Of the lines of a function, as `Definition` has them."""
    kept: dict[int, int] = {}
    changed: dict[int, tuple[int, ...]] = {}
    matcher = SequenceMatcher(_BRACES.__contains__, _squeezed(old), _squeezed(new))
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag == "equal":
            kept.update(zip(range(i, i_end), range(j, j_end), strict=True))
        elif tag == "replace":
            changed.update(_by_words(old, new, range(i, i_end), range(j, j_end)))
    taken = {*kept.values(), *(line for lines in changed.values() for line in lines)}
    left = [line for line in range(len(old)) if line not in kept and line not in changed]
    free = [line for line in range(len(new)) if line not in taken]
    changed.update(_moved(old, new, left, free))
    return LineMap(kept, changed)


def _squeezed(lines: Iterable[str]) -> list[str]:
    return [line.replace(" ", "") for line in lines]


def _by_words(
    old: Sequence[str], new: Sequence[str], before: range, after: range
) -> dict[int, tuple[int, ...]]:
    """What became of the lines of a stretch that changed."""
    old_words, old_line = _words(old, before)
    new_words, new_line = _words(new, after)
    if max(len(old_words), len(new_words)) > _MOST_WORDS:
        return {}
    shared: Counter[tuple[int, int]] = Counter()
    matcher = SequenceMatcher(None, old_words, new_words)
    for i, j, size in matcher.get_matching_blocks():
        for k in range(size):
            shared[old_line[i + k], new_line[j + k]] += 1
    old_size, new_size = Counter(old_line), Counter(new_line)
    found: dict[int, list[int]] = defaultdict(list)
    for (i, j), count in shared.items():
        is_in_place = i - before.start == j - after.start
        if count + is_in_place / 2 > _SAME * min(old_size[i], new_size[j]):
            found[i].append(j)
    return {i: tuple(sorted(lines)) for i, lines in found.items()}


def _words(lines: Sequence[str], rows: range) -> tuple[list[str], list[int]]:
    words, line = [], []
    for row in rows:
        found = _WORD.findall(lines[row])
        words += found
        line += [row] * len(found)
    return words, line


def _moved(
    old: Sequence[str], new: Sequence[str], left: Iterable[int], free: Sequence[int]
) -> dict[int, tuple[int, ...]]:
    """Lines that stand elsewhere now: those of one text, then those of the same calls, in order."""
    by_text: dict[str, deque[int]] = defaultdict(deque)
    by_calls: dict[frozenset[str], deque[int]] = defaultdict(deque)
    for j in free:
        by_text[new[j].replace(" ", "")].append(j)
        by_calls[called(new[j])].append(j)
    found: dict[int, tuple[int, ...]] = {}
    taken: set[int] = set()
    for i in left:
        text, calls = old[i].replace(" ", ""), called(old[i])
        if text in _BRACES:
            continue
        for there in (by_text[text], by_calls[calls] if calls else deque()):
            while there and there[0] in taken:
                there.popleft()
            if there:
                found[i] = (there[0],)
                taken.add(there.popleft())
                break
    return found


def called(line: str) -> frozenset[str]:
    """What a line calls, as far as its text tells."""
    return frozenset(_CALLED.findall(line))


_ENTERED = re.compile(r"\s*(?:[}]|(?:case|default|else|for|while|do)\b|\w+\s*:(?!:)|\w+\(\w*\) *{)")
"""Lines that are not, or not only, come to from the line before."""
_BRANCHES = re.compile(
    r"[{}]|\b(?:if|switch|case|default|else|for|while|do|return|break|continue|goto)\b"
)
_GOVERNS = re.compile(r"\b(?:if|for|while)\b")
"""With a parenthesis at its end, a line that the next one depends on."""


def neighbours(lines: Sequence[str], known: Set[int]) -> dict[int, int]:
    """Of lines that nothing is known of, the next one of the same block that is known.

    >>> neighbours(("f(x) {", "a();", "b();", "if (x)", "c();", "d();", "}"), {2, 5})
    {1: 2}
    """
    found: dict[int, int] = {}
    behind: int | None = None
    for row in range(len(lines) - 1, -1, -1):
        line = lines[row]
        if row in known:
            behind = row
        elif _BRANCHES.search(line):
            behind = None
        elif line and behind is not None:
            found[row] = behind
        if _ENTERED.match(line):
            behind = None
    return {row: near for row, near in found.items() if not _governs(lines[row - 1])}


def _governs(line: str) -> bool:
    """Whether the next line depends on one, without braces."""
    return line.endswith("else") or (line.endswith(")") and _GOVERNS.search(line) is not None)
