from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from lbr2pgo.cli import _parser
from lbr2pgo.cli.commands import COMMANDS, COMMON
from lbr2pgo.cli.parser import leaves


def test_help_lists_every_command_and_what_it_is_for(command: Callable[..., Any]) -> None:
    listed = command("--help")
    assert listed.code == 0
    for name, purpose in COMMANDS.items():
        assert re.search(rf"\n    {name}\s", listed.out)
        assert purpose in " ".join(listed.out.split())


def test_without_a_word_the_commands_stand_in_the_order_of_the_work(command) -> None:
    answer = command()
    assert (answer.code, answer) == (0, command("--help"))
    steps = [
        re.findall(r"^    ([a-z]+)\s", part, re.M)
        for part in answer.out.partition("COMMAND\n")[2].split("\n\n")[:5]
    ]
    assert steps[:4] == [
        ["record", "report", "view"], ["convert", "check", "pgo", "bolt"],
        ["diff", "settle", "carry"],
        ["merge", "fleet"],
    ]  # fmt: skip
    assert [name for step in steps for name in step] == list(COMMANDS)


@pytest.mark.parametrize("name", COMMON)
def test_help_shows_ten_common_options_and_names_the_way_to_all(command, name: str) -> None:
    short, whole = command(name, "--help"), command(name, "--help-all")
    assert (short.code, whole.code) == (0, 0)
    options = [
        re.findall(r"^  (-{1,2}[a-zA-Z].*?)(?:  |$)", answer.out, re.M) for answer in (short, whole)
    ]
    assert len(COMMON[name]) == 10
    assert len(options[0]) == 11  # and --help
    for each in COMMON[name]:
        assert any(each in line.replace(",", " ").split() for line in options[0]), each
    assert f"with {len(options[1]) - 11} more options: lbr2pgo {name} --help-all" in short.out
    assert "--quiet" in whole.out


def test_only_dump_shows_more_than_ten_options_and_those_of_messages() -> None:
    for leaf in leaves(_parser()):
        options = [a.option_strings[-1] for a in leaf._actions if a.option_strings]
        of_all = {"--help", "--quiet", "--verbose", "--color"}
        few = leaf.prog.split()[1] in COMMON or len({*options} - of_all) <= 10
        assert few or leaf.prog.startswith("lbr2pgo dump "), leaf.prog


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_a_module_and_answers_for_itself(
    command: Callable[..., Any], name: str
) -> None:
    assert import_module(f"lbr2pgo.cli.{name}").add_parser
    answer = command("help", name)
    assert answer.code == 0
    assert name == "help" or answer == command(name, "--help")


@pytest.mark.parametrize("name", COMMON)
def test_every_option_stands_where_its_question_is(name: str) -> None:
    (leaf,) = leaves(_parser([name], [name]))
    (rest,) = (group for group in leaf._action_groups if group.title == "options")
    assert [a.option_strings[-1] for a in rest._group_actions] == ["--help", "--help-all"]
