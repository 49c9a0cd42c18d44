from __future__ import annotations

import argparse

import pytest

from lbr2pgo.cli.selection import add_selection, counting_options
from lbr2pgo.counting.chosen_samples import SampleChoice


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_selection(parser)
    return parser.parse_args(words)


def test_without_options_everything_counts() -> None:
    chosen = counting_options(options())
    assert (chosen.event, chosen.choice, chosen.build_id) == (None, SampleChoice(), None)


def test_processes_add_up_however_they_are_written() -> None:
    assert counting_options(options("--pid", "1,2", "--pid", "3")).choice.pids == (1, 2, 3)


def test_a_build_id_is_whole_bytes_in_any_case() -> None:
    assert counting_options(options("--build-id", "C9aB")).build_id == "c9ab"


@pytest.mark.parametrize("text", ["", "c9a", "0xc9", "c9 ab", "zz"])
def test_what_is_no_build_id_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options("--build-id", text)
    assert "must be whole bytes in hexadecimal" in capsys.readouterr().err
