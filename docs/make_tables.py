"""Write the tables of the docs that follow from registries: `make tables`.

Each stands between `<!-- table: NAME (make tables) -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from lbr2pgo.cli.foreign import PROFGEN_OPTIONS
from lbr2pgo.model.compat import FOLLOWED, NOT_FOLLOWED
from lbr2pgo.profiles.base import Option
from lbr2pgo.profiles.registry import formats as written_formats
from lbr2pgo.profiles.registry import output
from lbr2pgo.sources import formats as read_formats
from lbr2pgo.sources import quirks

DOCS = Path(__file__).parent
Rows = Iterator[tuple[str, ...]]


def _read_formats() -> Rows:
    yield "format", "what it is"
    for form in read_formats():
        yield form.name, form.summary


def _written_formats() -> Rows:
    yield "format", "option", "written as", "read by", "limits"
    before: tuple[str, ...] = ()
    for form in written_formats():
        is_same = bool(before) and form.limitations == before
        limits = "as above" if is_same else "; ".join(form.limitations)
        before = form.limitations
        for each in form.forms:
            words = " ".join(output(form.name, "OUT", **each.options).words())
            yield each.name, f"`{words}`", each.written_as, each.read_by, limits
            limits = "as above"  # they are the format's, whatever its form


def _options() -> Rows:
    yield "output", "fields and their options"
    for form in written_formats():
        yield f"`{form.name}`", ", ".join(map(_field, form.output.options()))


def _field(option: Option) -> str:
    value = "N" * option.is_number or "N,N…" * option.is_list or ", ".join(option.choices)
    return f"`{option.name}` (`{option.flag.word}`{': ' * bool(value)}{value})"


def _quirks() -> Rows:
    yield "quirk", "recorder", "how it shows", "what is done", "counted as"
    for quirk in quirks():
        counted = quirk.loss.reason if quirk.loss else quirk.tally or "nothing"
        yield quirk.name, quirk.recorder, quirk.seen, quirk.done, counted


def _differences() -> Rows:
    yield "tool", "what it does", "what we do", "`--compat`"
    for rules, answer in ((FOLLOWED, "theirs"), (NOT_FOLLOWED, "ours")):
        for rule in rules:
            tool = "both" if rule.is_of_both else rule.tool
            yield tool, rule.theirs, rule.ours, answer


def _llvm_profgen() -> Rows:
    yield "its option", "here"
    for words, here in PROFGEN_OPTIONS:
        yield ", ".join(f"`{word}`" for word in words.split()), here


TABLES: dict[str, Callable[[], Rows]] = {
    "formats that are read": _read_formats,
    "formats that are written": _written_formats,
    "options of written formats": _options,
    "quirks": _quirks,
    "differences": _differences,
    "options of llvm-profgen": _llvm_profgen,
}

_TABLE = re.compile(r"(<!-- table: ([^\n]+) \(make tables\) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def refreshed(text: str) -> str:
    """A page with its tables as the registries have them now."""
    return _TABLE.sub(lambda found: found[1] + _in_markdown(TABLES[found[2]]()), text)


def _in_markdown(rows: Rows) -> str:
    head, *others = (f"| {' | '.join(cells)} |\n" for cells in rows)
    return "".join([head, "| --- " * head.count(" | ") + "| --- |\n", *others])


def main() -> int:
    """Refresh all pages, and say which have changed."""
    for page in sorted(DOCS.rglob("*.md")):
        old = page.read_text()
        if (new := refreshed(old)) != old:
            page.write_text(new)
            print(page.relative_to(DOCS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
