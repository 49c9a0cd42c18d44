"""The loss waterfall as it is printed."""

from __future__ import annotations

import io

import pytest

from lbr2pgo.cli.waterfall import print_waterfall

TALLIES = {
    "samples_read": 10,
    "samples_selected": 10,
    "samples_with_stack": 7,
    "samples_with_stack/no_stack": 3,
}


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def printed(stream: io.StringIO) -> str:
    print_waterfall(TALLIES, stream)
    return stream.getvalue()


@pytest.fixture(autouse=True)
def _usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_a_loss_has_its_reason_and_a_cure() -> None:
    lines = printed(io.StringIO()).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("    lost 3: "))
    assert lines[at + 1].startswith("    → ")


def test_only_a_terminal_is_sent_styles() -> None:
    plain, styled = printed(io.StringIO()), printed(Terminal())
    assert "\x1b" not in plain
    assert "\x1b[33m    lost 3: " in styled
    assert styled.count("\x1b[0m") == 2


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_no_styles_gets_none(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert printed(Terminal()) == printed(io.StringIO())
