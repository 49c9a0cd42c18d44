"""Profiles made again of what they are said to have come of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from builders.recordings import PIE, RECORDING, STATIC, STATIC_RECORDING

import lbr2pgo
from lbr2pgo.provenance.verifying import why_not_verified

OPTIONS: dict[str, dict[str, Any]] = {
    "usual": {},
    "choice": {
        "pid": [17737],
        "time": (0.0, None),
        "drop_newest": 1,
        "strict": True,
    },
    "inferred": {"correct_runs": True, "compat": ["llvm-profgen"], "force": True},
    "form": {"llvm_format": "extbinary", "md5": True},
    "stable": {"stable": True},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_it_is_made_again_with_the_same_options(options: dict[str, Any], place: Path) -> None:
    recording, program, profile = (place / name for name in ("perf.data", "app", "app.prof"))
    lbr2pgo.convert(recording, program, llvm=profile, provenance=True, **options)
    plain = place / "plain"
    lbr2pgo.convert(recording, program, llvm=plain)
    assert (profile.read_bytes() == plain.read_bytes()) == (not options)
    assert why_not_verified(profile, program, [recording]) is None


@pytest.fixture
def made(place: Path) -> tuple[Path, Path, Path]:
    """A profile, its program and its recording."""
    recording, program, profile = (place / name for name in ("perf.data", "app", "app.prof"))
    lbr2pgo.convert(recording, program, llvm=profile, provenance=True)
    return profile, program, recording


def changed(profile: Path, **facts: object) -> None:
    """Tell something else of a profile."""
    path = profile.with_name("app.prof.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))


def test_check_proves_it(command, made) -> None:
    profile, program, recording = made
    words = ("check", profile, "--binary", program, "--verify", recording)
    answer = command(*words)
    assert answer.code == 0
    assert answer.out.splitlines()[-1] == "verify: made again of its recordings, to the byte"
    assert "of app, build-id e75cc8c58b5ba6370d0bc41415fe986ec5ab974e" in answer.out
    found = json.loads(command(*words, "--format", "json").out)
    assert found["verified"] == "made again of its recordings, to the byte"
    assert found["provenance"]["samples"] == 128


def test_check_tells_what_it_came_of_unasked(command, made) -> None:
    profile, program, _ = made
    assert "written by lbr2pgo" in command("check", profile, "--binary", program).out


def test_a_profile_that_was_changed_is_refused(command, made) -> None:
    profile, program, recording = made
    profile.write_text(profile.read_text().replace("main", "nain"))
    answer = command("check", profile, "--binary", program, "--verify", recording)
    assert answer.code == 1
    assert answer.out.startswith("Verdict: refused by verify.")
    assert "app.prof was changed since it was written" in answer.out.splitlines()[-1]
    for words in (("check", profile, "--binary", program), ("dump", "provenance", profile)):
        assert "its provenance is that of another profile" in command(*words).err


def test_what_it_did_not_come_of_is_told(made) -> None:
    profile, program, recording = made
    assert why_not_verified(profile, program, [STATIC_RECORDING]) == (
        f"{STATIC_RECORDING} is none of the recordings that it came of"
    )
    assert why_not_verified(profile, program, [recording, recording]) == (
        "it came of 1 recording, of which 2 are given"
    )
    why = why_not_verified(profile, STATIC, [recording])
    assert why is not None
    assert f"and {STATIC} is" in why


def test_other_options_make_another_profile(made) -> None:
    profile, program, recording = made
    changed(profile, options={"counting": {"drop_newest": 3}})
    assert why_not_verified(profile, program, [recording]) == "made again, it is another one"


@pytest.mark.parametrize(
    "facts",
    [{"options": {"pace": 3}}, {"options": {"counting": 7}}, {"output": "none"},
     {"options": {"output": {"form": "x", "y": 3}}}, {"options": {"profiles": ["/etc/passwd"]}},
     {"options": {"compat": {"tools": ["x"]}}}, {"options": {"strict": "yes"}},
     {"options": {"counting": {"drop_oldest": -1}}},
     {"options": {"counting": {"choice": {"time": [1]}}}}],
)  # fmt: skip
def test_options_that_nobody_can_have_given_are_an_error(command, made, facts: Any) -> None:
    profile, program, recording = made
    changed(profile, **facts)
    answer = command("check", profile, "--binary", program, "--verify", recording)
    assert (answer.code, answer.out) == (2, "")
    assert "app.prof.json: names options that nobody can have given" in answer.err


def test_a_profile_without_provenance_can_not_be_proved(command, made) -> None:
    profile, program, recording = made
    shutil.copy(profile, profile.with_name("bare"))
    answer = command("check", profile.with_name("bare"), "--binary", program, "--verify", recording)
    assert answer.code == 2
    assert "has no provenance: there is no bare.json" in answer.err


def test_several_recordings_may_come_in_any_order(place: Path) -> None:
    copy = place / "another.data"
    copy.write_bytes(RECORDING.read_bytes())
    lbr2pgo.convert([RECORDING, copy], PIE, llvm=place / "p", provenance=True)
    assert why_not_verified(place / "p", PIE, [copy, RECORDING]) is None
