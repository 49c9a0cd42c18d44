from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from lbr2pgo.sources import formats

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_in_the_docs_print_what_they_say(page: Path) -> None:
    failed, _ = doctest.testfile(str(page), module_relative=False)
    assert failed == 0


def test_the_table_of_formats_is_made_from_the_registry() -> None:
    text = (ROOT / "docs" / "formats.md").read_text()
    table = text.split("-->\n", 1)[1].split("<!-- end", 1)[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    expected = [f"| {f.name} | {f.summary} | {'; '.join(f.references)} |" for f in formats()]
    assert rows == expected


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_links_inside_the_project_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


def test_pages_that_show_counting_have_running_examples() -> None:
    assert ">>> " in (ROOT / "docs" / "counting.md").read_text()
