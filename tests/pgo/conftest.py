from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders.loops import BUILD, MakeLoop

from lbr2pgo.pgo.loop import Loop
from lbr2pgo.pgo.loop_options import LoopOptions
from lbr2pgo.pgo.timing import NOT_TIMED
from lbr2pgo.pgo.training import Training

TESTBINS = Path(__file__).parents[2] / "testbins"


@pytest.fixture(autouse=True)
def _leaves_nothing(nothing_is_left: None) -> None:
    """Every test of a command is looked at."""


@pytest.fixture
def said() -> list[str]:
    """What the loop has said."""
    return []


@pytest.fixture
def loop(
    tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> MakeLoop:
    """`loop(bolt=True, …)`: over the interpreter, in a directory of its own."""
    tool("clang-22"), tool("ld.lld-22"), tool("qemu-x86_64")
    shutil.copy(TESTBINS / "src" / "interp.c", tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("CFLAGS", "CXXFLAGS", "LDFLAGS"):
        monkeypatch.delenv(name, raising=False)

    def make(**changes: Any) -> Loop:
        plain: dict[str, Any] = {
            "build": BUILD, "binary": Path("app"), "train": Training(("./app 2",), 1009, True),
            "profile": None, "probes": False, "bolt": False, "measure": None, "runs": NOT_TIMED,
            "work": Path("work"),
        }  # fmt: skip
        return Loop(LoopOptions(**{**plain, **changes}), said.append)

    return make
