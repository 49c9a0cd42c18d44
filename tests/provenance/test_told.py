from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lbr2pgo
from lbr2pgo.provenance.told import read_provenance
from lbr2pgo.support.errors import InputError

WHOLE: dict[str, Any] = {
    "format": "lbr2pgo-provenance-1", "version": "0.1.0", "output": "llvm", "sha256": "a" * 64,
    "program": "app", "build_id": "00ff", "compilers": ["clang"], "flags": ["-O2"],
    "revision": "c0ffee", "samples": 7, "options": {"strict": True},
    "recordings": [{"name": "perf.data", "sha256": "b" * 64, "format": "perf.data",
                    "recorder": "perf 6.1", "event": "br", "period": 9001, "is_exact": False}],
}  # fmt: skip
PROFILE = "f:9:1\n 1: 9\n"


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "app.prof"
    path.write_text(PROFILE)
    return path


def put(profile: Path, content: str | bytes) -> None:
    """Write what stands beside it."""
    path = profile.with_name("app.prof.json")
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def test_it_is_shown(command, profile: Path) -> None:
    put(profile, json.dumps(WHOLE))
    assert command("dump", "provenance", profile).out.splitlines() == [
        "written by lbr2pgo 0.1.0, 7 samples",
        "of app, build-id 00ff",
        "compiled by clang",
        "with -O2",
        "from commit c0ffee",
        f"recorded in perf.data (perf 6.1, br, period 9,001), sha256 {'b' * 64}",
        'options: {"strict": true}',
    ]


def test_there_may_be_none(command, profile: Path) -> None:
    assert read_provenance(profile) is None
    answer = command("dump", "provenance", profile)
    assert answer.code == 2
    assert "has no provenance: there is no app.prof.json" in answer.err


DAMAGED: dict[str, str | bytes] = {
    "nothing": "", "cut off": json.dumps(WHOLE)[:99], "no object": "[]", "deep": "[" * 100_000,
    "no text": b"\xff\xfe\x00", "another format": json.dumps({**WHOLE, "format": "x"}),
    "a lack": json.dumps({k: v for k, v in WHOLE.items() if k != "sha256"}),
    "a number for a name": json.dumps({**WHOLE, "program": 7}),
    "numbers for names": json.dumps({**WHOLE, "compilers": [7]}),
    "a recording that is none": json.dumps({**WHOLE, "recordings": [7]}),
    "recordings that are none": json.dumps({**WHOLE, "recordings": 7}),
}  # fmt: skip


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_damage_is_said_and_nothing_is_written(command, profile: Path, content: str) -> None:
    put(profile, content)
    output = profile.with_name("out")
    for words in (
        ("dump", "provenance", profile), ("diff", profile, profile),
        ("settle", profile, "--onto", profile, "-o", output),
    ):  # fmt: skip
        answer = command(*words)
        assert (answer.code, answer.out) == (2, "")
        assert "is no provenance (lbr2pgo-provenance-1), or damaged" in answer.err
    assert not output.exists()


@given(st.binary(max_size=60), st.integers(0, 500), st.integers(0, 60))
def test_any_damage_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, bytes_: bytes, at: int, length: int
) -> None:
    profile = tmp_path_factory.getbasetemp() / "app.prof"
    whole = json.dumps(WHOLE).encode()
    put(profile, whole[:at] + bytes_ + whole[at + length :])
    try:
        found = read_provenance(profile)
    except InputError:
        return
    assert found is not None
    assert list(found.lines())


def test_exact_counts_leave_nothing_to_chance(profile: Path) -> None:
    """Of the profile that is told of, and of no other."""
    new = profile.with_name("new.prof")
    recordings = [{**WHOLE["recordings"][0], "is_exact": True}]
    for path, text in ((profile, PROFILE), (new, PROFILE + "g:1:1\n 1: 1\n")):
        path.write_text(text)
        assert lbr2pgo.diff(profile, path).functions.found == 0
    for path in (profile, new):
        from hashlib import sha256

        digest = sha256(path.read_bytes()).hexdigest()
        beside = path.with_name(f"{path.name}.json")
        beside.write_text(json.dumps({**WHOLE, "sha256": digest, "recordings": recordings}))
    assert lbr2pgo.diff(profile, new).functions.found == 2
    settled = profile.with_name("settled.prof")
    assert lbr2pgo.settle(new, profile, settled).changed == ("g",)
    new.write_text(new.read_text().replace("9", "8"))
    assert lbr2pgo.diff(profile, new).functions.found == 0
