from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from lbr2pgo.cli import main


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str


Command = Callable[..., Answer]


@pytest.fixture
def command(capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    """Run lbr2pgo in this process; no answer may ever hold a traceback or a control character."""

    def run(*words: object) -> Answer:
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:  # argparse's way to refuse
            code = int(end.code or 0)
        captured = capfdbinary.readouterr()
        out, err = (text.decode(errors="surrogateescape") for text in captured)
        assert "Traceback" not in err
        assert not set(err) & set(map(chr, [*range(10), *range(11, 32), 0x7F]))
        return Answer(code, out, err)

    return run


@pytest.fixture(autouse=True)
def _leaves_nothing(nothing_is_left: None) -> None:
    """Every test of a command is looked at."""
