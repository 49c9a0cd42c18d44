from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lbr2pgo.recorders.options import DEFAULT_STARTUP, RecordOptions, StartEnd
from lbr2pgo.support.errors import InputError

Options = Callable[..., RecordOptions]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"filters": ("hw_index",)}, "unknown branch filter 'hw_index'"),
        ({"period": 0}, "period of 0"),
        ({"depth": 12}, "no branch ring has 12"),
        ({"command": ()}, "no command"),
        ({"call_stack": True, "filters": ("cond",)}, "call stack can't be filtered"),
        ({"startup": 0}, "no program starts for 0 seconds"),
        ({"startup": 1, "command": (), "all_cpus": True}, "what runs already has started"),
        (
            {"until": StartEnd("f", Path("p"), 1), "command": (), "pids": (3,)},
            "what runs already has started",
        ),
        ({"no_lbr": True, "depth": 16}, "samples of instructions have no branches"),
        ({"no_lbr": True, "emulate": True}, "samples of instructions have no branches"),
    ],
)
def test_senseless_options(make_options: Options, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_options(**changes)


def test_options_are_frozen(make_options: Options) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        make_options().period = 3  # type: ignore[misc]


@pytest.mark.parametrize("depth", [None, 8, 64])
def test_a_start_is_recorded_so_densely_that_no_branch_is_lost(
    make_options: Options, depth: int | None
) -> None:
    settled = make_options(startup=2.5, depth=depth).settled()
    assert settled.emulate
    assert settled.duration == 2.5
    longest = settled.period + settled.period // 8
    assert longest <= (depth or 32)


def test_what_is_said_of_a_start_holds(make_options: Options) -> None:
    settled = make_options(startup=2.5, period=7, duration=9).settled()
    assert (settled.period, settled.duration) == (7, 9)


def test_what_is_reproducible_is_exact(make_options: Options) -> None:
    plain = make_options(reproducible=True)
    assert str(plain.settled().exact) == f"{plain.output}.exact"
    own = make_options(reproducible=True, exact=Path("own.npz"))
    assert own.settled().exact == Path("own.npz")
    assert make_options(reproducible=True, output=Path("-")).settled().exact is None
    assert make_options().settled().exact is None


def test_what_a_function_ends_is_a_start(make_options: Options) -> None:
    settled = make_options(until=StartEnd("f", Path("p"), 1)).settled()
    assert settled.emulate
    assert settled.duration == DEFAULT_STARTUP
    assert settled.until == StartEnd("f", Path("p"), 1)
