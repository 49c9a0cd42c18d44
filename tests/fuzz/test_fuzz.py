"""Each fuzz target runs, briefly; the fuzzer itself stops at whatever it finds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from targets import TARGETS

HERE = Path(__file__).parent
RUN = HERE / "run.py"
RUNS = 50
"""Twice the seeds of any target: what it is given beyond them is damaged."""

pytestmark = pytest.mark.slow

needs_atheris = pytest.mark.skipif(
    find_spec("atheris") is None, reason="atheris is not installed: it has no wheel for this system"
)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_answered(name: str) -> None:
    seeds = list(TARGETS[name].seeds())
    if not seeds:
        pytest.skip("the corpus is not beside the project (../shared/corpus)")
    for data in seeds:
        TARGETS[name](data)
        TARGETS[name](data[: len(data) // 2])
    TARGETS[name].run(seeds[0])


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What was said of each target, all of them in one run."""
    words = [sys.executable, RUN, "--runs", RUNS, "--output", tmp_path_factory.mktemp("fuzz")]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True)
    parts = re.split(r"^(\w+) …$", done.stdout, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@needs_atheris
@pytest.mark.parametrize("name", TARGETS)
def test_a_few_runs_find_nothing(name: str, said: dict[str, str]) -> None:
    runs = re.search(r"^(\d+) runs$", said[name], re.MULTILINE)
    assert runs is not None, said[name][-4000:]
    assert int(runs[1]) >= RUNS  # the fuzzer ends a little later where it is still reading seeds


BROKEN = """
import tempfile

class Target:
    longest = 64

    def seeds(self):
        return [b"seed"]

    def __call__(self, data):
        if len(data) > 8:
            {}

TARGETS = {{"broken": Target()}}
"""


@needs_atheris
@pytest.mark.parametrize(
    ("breaks", "says"),
    [("raise RuntimeError('found')", "RuntimeError: found"), ("while True: pass", "TooSlowError")],
)
def test_a_finding_fails(tmp_path: Path, breaks: str, says: str) -> None:
    """A reader that breaks over some input: the fuzzer says so, and what that made is removed."""
    makes = "print('made', tempfile.mkdtemp(), flush=True)\n            "
    (tmp_path / "targets.py").write_text(BROKEN.format(makes + breaks))
    (tmp_path / "run.py").write_text(RUN.read_text().replace("SECONDS = 10", "SECONDS = 1"))
    words = [sys.executable, tmp_path / "run.py", "--runs", 5000, "--output", tmp_path, "broken"]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True)
    assert done.returncode == 1
    assert says in done.stdout
    assert list((tmp_path / "broken").glob("crash-*"))
    made = re.findall("^made (.+)$", done.stdout, re.MULTILINE)
    assert made
    assert not any(map(os.path.exists, made))


def test_what_damage_finds_is_made_smaller(tmp_path: Path) -> None:
    breaks = "assert b'ee' not in data"
    (tmp_path / "targets.py").write_text(BROKEN.format(breaks).replace('b"seed"', 'b"seed" * 9'))
    for file in ("run.py", "mutated.py"):
        (tmp_path / file).write_text((HERE / file).read_text())
    words = [sys.executable, tmp_path / "mutated.py", "--seconds", 5, "--jobs", 1]
    done = subprocess.run(
        [*map(str, words), "--output", str(tmp_path / "out")], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "AssertionError" in done.stdout
    (found,) = {*(tmp_path / "out").iterdir()} - {*(tmp_path / "out").glob("*.txt")}
    assert b"ee" in found.read_bytes()
    assert len(found.read_bytes()) == 9


FINDINGS = sorted((HERE / "findings").iterdir())
FOUND_IN = sorted({path.name.rpartition("-")[0] for path in FINDINGS})


@pytest.mark.parametrize("name", FOUND_IN)
def test_what_was_found_once_is_answered(name: str) -> None:
    """Files are named after their target; each took endless time, or ended in a traceback."""
    files = [path for path in FINDINGS if path.name.rpartition("-")[0] == name]
    words = [sys.executable, RUN, "--replay", name, *files]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == len(files)
