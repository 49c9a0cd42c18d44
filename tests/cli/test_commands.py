from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from lbr2pgo.cli.commands import COMMANDS


def test_help_lists_every_command_and_what_it_is_for(command: Callable[..., Any]) -> None:
    listed = command("--help")
    assert listed.code == 0
    for name, purpose in COMMANDS.items():
        assert re.search(rf"\n    {name}\s", listed.out)
        assert purpose in " ".join(listed.out.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_a_module_and_answers_for_itself(
    command: Callable[..., Any], name: str
) -> None:
    assert import_module(f"lbr2pgo.cli.{name}").add_parser
    answer = command("help", name)
    assert answer.code == 0
    assert name == "help" or answer == command(name, "--help")
