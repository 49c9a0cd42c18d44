"""What we count otherwise than the peers: each rule is asked for by name, and shown by a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from builders.fixtures import ROOT

import lbr2pgo
from lbr2pgo.model import compat
from lbr2pgo.model.compat import FOLLOWED, LLVM_PROFGEN, NOT_FOLLOWED, OURS, PERF2BOLT, Compat, Rule
from lbr2pgo.support.errors import InputError

NAMES = {name: rule for name, rule in vars(compat).items() if isinstance(rule, Rule)}
SOURCES = {
    path: path.read_text()
    for path in Path(lbr2pgo.__file__).parent.rglob("*.py")
    if path.name != "compat.py"
}


def test_every_rule_has_its_row() -> None:
    assert set(NAMES.values()) == set(FOLLOWED)
    assert len(set(FOLLOWED + NOT_FOLLOWED)) == len(FOLLOWED) + len(NOT_FOLLOWED)


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_is_asked_for_by_its_name(name: str) -> None:
    assert any(f"follows({name})" in text for text in SOURCES.values())


def test_nobody_asks_for_the_tool_instead() -> None:
    asks = re.compile(r"LLVM_PROFGEN|PERF2BOLT|\.tools\b")
    assert [path for path, text in SOURCES.items() if asks.search(text)] == []


@pytest.mark.parametrize("rule", FOLLOWED + NOT_FOLLOWED)
def test_what_shows_a_rule_exists(rule: Rule) -> None:
    files = re.findall(r"`(tests/[^`]+\.py)`", rule.shown_by)
    assert files
    assert [name for name in files if not (ROOT / name).exists()] == []


def test_a_tool_s_rules_are_followed_where_it_is_asked_for() -> None:
    for rule in FOLLOWED:
        assert not OURS.follows(rule)
        assert Compat(frozenset({LLVM_PROFGEN})).follows(rule) == (rule.tool == LLVM_PROFGEN)
        assert Compat(frozenset({LLVM_PROFGEN, PERF2BOLT})).follows(rule)


def test_an_unknown_tool_is_refused() -> None:
    with pytest.raises(InputError, match=r"create_llvm_prof.*\n.*llvm-profgen, perf2bolt"):
        Compat(frozenset({"create_llvm_prof"}))
