"""docs/glossary.md: its words are used, and none of those that it has them stand for."""

from __future__ import annotations

import re
from functools import cache

import pytest
from builders.fixtures import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in GLOSSARY.read_text().splitlines()
    if line.startswith("| ")
][2:]
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page != GLOSSARY]


def words_of(text: str) -> str:
    """In lower case, with a blank for all between words."""
    return " ".join(re.findall(r"[\w-]+", text.lower()))


@cache
def all_words() -> str:
    """Those of all pages, and of the code."""
    code = (path for kind in ("py", "pyx", "pxd") for path in (ROOT / "lbr2pgo").rglob(f"*.{kind}"))
    return " ".join(words_of(path.read_text()) for path in (*PAGES, ROOT / "README.md", *code))


def test_the_glossary_is_short() -> None:
    assert len(ROWS) > 30
    assert len(GLOSSARY.read_text().splitlines()) <= 42


@pytest.mark.parametrize("word", [row[0] for row in ROWS])
def test_a_word_is_used(word: str) -> None:
    assert re.search(rf"\b{word.lower()}(s|es)?\b", all_words())


@pytest.mark.parametrize("other", [each for row in ROWS for each in row[2].split(", ") if each])
def test_no_other_word_stands_for_it(other: str) -> None:
    found = re.findall(rf".{{20}}\b{re.escape(other.lower())}s?\b.{{20}}", all_words())
    assert found == []
