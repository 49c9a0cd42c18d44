"""docs/coming-from.md: no option of the other converters is forgotten."""

from __future__ import annotations

import re
import subprocess
from argparse import ArgumentParser
from pathlib import Path

import pytest
from builders.fixtures import Tool

PAGE = (Path(__file__).parents[1] / "docs" / "coming-from.md").read_text()
OPTIONS = {
    "llvm-profgen": ("llvm-profgen-22", r"^  (--?[\w-]+)"),
    "perf2bolt": ("perf2bolt-22", r"^  (--?[\w-]+)"),
    "create_llvm_prof": ("create_llvm_prof", r"^    (-\w+) \("),
}
"""How to run each tool, and how its options look in its help."""


def told(title: str) -> set[str]:
    """Options in the first column of a section's table."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`-.+?) \|", section, re.MULTILINE)
    return {option for cell in cells for option in re.findall(r"`([^`]+)`", cell)}


@pytest.mark.parametrize("title", OPTIONS)
def test_every_option_has_a_line_and_no_line_an_option_that_is_not_there(
    title: str, tool: Tool
) -> None:
    name, form = OPTIONS[title]
    done = subprocess.run([tool(name), "--help"], capture_output=True, text=True)
    known = set(re.findall(form, done.stdout + done.stderr, re.MULTILINE))
    assert len(known) > 10
    assert told(title) == known


def test_our_own_options_in_it_exist(command_line: str) -> None:
    ours = set(
        re.findall(r"`(?:lbr2pgo [a-z]+ [^`]*?)?(--[a-z-]+)", PAGE.split("## llvm-profgen")[1])
    )
    theirs = {option for title in OPTIONS for option in told(title)}
    assert {option for option in ours - theirs if option not in command_line} <= {"--itrace"}


@pytest.fixture(scope="module")
def command_line() -> str:
    """What every command says of all its options."""
    from lbr2pgo.cli import _parser
    from lbr2pgo.cli.parser import leaves

    return "\n".join(ArgumentParser.format_help(parser) for parser in leaves(_parser()))
