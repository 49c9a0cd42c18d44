"""Where the functions of a source file stand, told by its text: C, C++, Rust, Zig and their like.

Nothing is compiled or preprocessed, so that a tree serves as it lies there. Comments and literals
are blanked, then braces are followed: what stands before one, and where, says what it opens. Of the
branches of an `#if`, each begins as deep as the first one did.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from lbr2pgo.support.dataclass import dataclass

SUFFIXES = frozenset(
    (".c", ".cc", ".cpp", ".cxx", ".c++", ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp",
     ".tcc", ".def", ".m", ".mm", ".cu", ".rs", ".zig")
)  # fmt: skip
"""Of files that may hold functions."""

_BLANKED = re.compile(
    r"""//(?:[^\n\\]|\\.)*|/\*.*?(?:\*/|\Z)
    |R"([^\s()\\"]{0,16})\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\[^'\n]{1,9}|\\')'
    |\#[ \t]*(?:define|undef|include|pragma|error|warning|line)\b(?:[^\n\\]|\\.)*
    |\#[ \t]*(if|el|endif)(?:[^\n\\]|\\.)*""",
    re.VERBOSE | re.DOTALL,
)
_NOT_A_NEWLINE = re.compile(r"[^\n]+")
_MARK = re.compile(r"[{}\x01\x02\x03]")
_BRANCHES = {"if": "\x01", "el": "\x02", "endif": "\x03"}
"""What stands for `#if`, `#else` or `#elif`, and `#endif` in blanked text."""

_ARGUMENTS = r"(?:<(?:[^;{}()<>]|<[^;{}()<>]*>)*>\s*)?"
_PARAMETERS = re.compile(
    r"(?<![\w$])((?:[A-Za-z_$][\w$]*::)*+(?:operator\s*(?:\(\s*\)|[^\s\w(]+|[\w:\s*&]++)|~?[A-Za-z_$][\w$]*))\s*\)?\s*"
    rf"{_ARGUMENTS}\((?!\s*[\w$]+\s*\)\s*\()"
)
_INITIALISERS = re.compile(r"\)\s*:(?!:)")
"""Of a constructor: behind its parameters."""
_INITIALISED = re.compile(r"\)\s*:(?!:).*[\w>]\s*\Z", re.DOTALL)
"""What stands before the braces around a member's first value."""
_FN = re.compile(r"\bfn\s+([A-Za-z_]\w*)")
_SCOPE = re.compile(
    r"\b(?:namespace|class|struct|union|impl|trait|mod|extern\s*(?:\"\s*\"|$))\s*"
    rf"{_ARGUMENTS}([\w:]*)"
)
_BEHIND_SCOPE = re.compile(
    r"[^()]*|.*\)\s*(?!const\b|noexcept\b|override\b|final\b)\w.*", re.DOTALL
)
_OLD_STYLE = re.compile(r"[\w*]\s+\*?\w+\s*\([\w\s,]*\)\s*(?:[\w\s*,\[\]()]+;)+\s*\Z")
"""A definition as C had it before 1989: the types of its parameters behind them."""
_LONGEST_HEAD = 4096
"""Characters before a brace that are looked at."""
_NO_FUNCTION = frozenset(
    ("if", "for", "while", "switch", "catch", "return", "sizeof", "alignas", "decltype", "noexcept",
     "throw", "requires", "defined", "__attribute__", "__declspec", "__asm__", "asm", "_Alignas",
     "__typeof__", "typeof", "template")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Definition:
    """A function in a source file."""

    name: str
    """As its definition has it, without what it is qualified by."""
    scope: str
    """What it is a part of: namespaces and classes, by `::`."""
    file: str
    start: int
    """Line of the name, from 1 on."""
    end: int
    """Line of the closing brace."""
    lines: tuple[str, ...]
    """From `start` to `end`: comments and literals are left out, blanks squeezed."""


def definitions(text: str, file: str) -> Iterator[Definition]:
    """The functions of a file, in its order; of a head that may name several, one of each."""
    code = blanked(text)
    newlines = [-1, *(m.start() for m in re.finditer("\n", code))]
    lines: list[str] = []
    for at, names, scope, close in _functions(code):
        if not lines:
            lines = [" ".join(line.split()) for line in _MARKS_OUT.sub("", code).split("\n")]
        end = bisect_right(newlines, close - 1)
        for name, offset in names:
            start = bisect_right(newlines, at + offset - 1)
            body = tuple(lines[start - 1 : end])
            own, _, last = name.rpartition("::")
            yield Definition(last, "::".join(filter(None, (scope, own))), file, start, end, body)


_MARKS_OUT = re.compile("[\x01\x02\x03]")


def blanked(text: str) -> str:
    """The text without comments, literals and directives, each line and column where it was."""
    return _BLANKED.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    text = match[0]
    space = _NOT_A_NEWLINE.sub(lambda part: " " * len(part[0]), text)
    if match[2]:
        return _BRANCHES[match[2]] + space[1:]
    return f'"{space[2:]}"' if text[0] in "\"'R" else space


def _functions(code: str) -> Iterator[tuple[int, list[tuple[str, int]], str, int]]:
    """Where a head begins, the names in it with their offsets, the scope, where the body ends."""
    marks = [(m.start(), m[0]) for m in _MARK.finditer(code)]
    depth = _depths(marks)
    scopes: list[tuple[int, str]] = []  # depth inside, and name
    boundary = passed = 0  # where a head may begin, and where the next mark may stand
    for row, (at, mark) in enumerate(marks):
        if at < passed:
            continue
        while scopes and depth[row] < scopes[-1][0]:
            scopes.pop()
        if mark == "{":
            start = _head_start(code, boundary, at)
            head = code[start:at]
            opened = _scope_name(head)
            if opened is not None:
                scopes.append((depth[row], opened))
            else:
                close = _close(marks, depth, row)
                passed = close + 1
                if _INITIALISED.search(head):
                    continue
                if names := _names(head):
                    yield start, names, "::".join(name for _, name in scopes if name), close
        boundary = passed = max(passed, at + 1)


def _head_start(code: str, boundary: int, at: int) -> int:
    """Where what stands before a brace begins: behind the last statement, or before old types."""
    boundary = max(boundary, at - _LONGEST_HEAD)
    start = max(boundary, code.rfind(";", boundary, at) + 1)
    is_old = not code[start:at].strip() and _OLD_STYLE.search(code[boundary:at])
    return boundary if is_old else start


def _depths(marks: list[tuple[int, str]]) -> list[int]:
    """Depth behind each mark."""
    changes = []
    before: list[int] = []
    depth = 0
    for _, mark in marks:
        change = {"{": 1, "}": -1}.get(mark, 0)
        if mark == "\x01":
            before.append(depth)
        elif mark == "\x02" and before:
            change = before[-1] - depth
        elif mark == "\x03" and before:
            before.pop()
        depth += change
        changes.append(change)
    return list(accumulate(changes))


def _close(marks: list[tuple[int, str]], depth: list[int], row: int) -> int:
    """Where what a brace opens ends; behind all, if it does not."""
    for later in range(row + 1, len(marks)):
        if depth[later] < depth[row]:
            return marks[later][0]
    return marks[-1][0] + 1


def _scope_name(head: str) -> str | None:
    """The name of a namespace, class or the like that a head opens; None if it opens none."""
    *_, last = (None, *_SCOPE.finditer(head))
    return last[1] if last and _BEHIND_SCOPE.fullmatch(head[last.end() :]) else None


def _names(head: str) -> list[tuple[str, int]]:
    """What may be the name of the function that a head defines, and where it stands."""
    if head.rstrip().endswith(("=", ",")):
        return []
    if function := _FN.search(head):
        return [(function[1], function.start(1))]
    found = []
    for match in _PARAMETERS.finditer(_INITIALISERS.split(head, maxsplit=1)[0]):
        name = match[1]
        if name not in _NO_FUNCTION and _is_outside(head, match.start()):
            found.append(("".join(name.split()) if "operator" in name else name, match.start(1)))
    return found


def _is_outside(head: str, at: int) -> bool:
    """Whether a place is in no parentheses, but for those around a name alone."""
    before = head[:at]
    open_ones = before.count("(") - before.count(")")
    return open_ones == 0 or (open_ones == 1 and before.rstrip().endswith("("))
