from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.mark.parametrize("name", ["convert", "record"])
def test_help_of_a_command_is_what_the_command_says_of_itself(command: Command, name: str) -> None:
    said = command("help", name)
    assert (said.code, said.out) == (0, command(name, "--help").out)
    assert said.out.startswith(f"usage: lbr2pgo {name}")


def test_help_alone_lists_the_commands(command: Command) -> None:
    assert command("help").out == command("--help").out


def test_a_word_that_is_no_command_is_refused(command: Command) -> None:
    refused = command("help", "convrt")
    assert refused.code == 2
    assert "convert" in refused.err
