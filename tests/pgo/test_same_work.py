"""Two builds of a program, told apart by what they do; real processes, of shell scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from lbr2pgo.pgo.same_work import check_same_work
from lbr2pgo.pgo.training import Training
from lbr2pgo.support.errors import InputError


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`builds(first, second)`: two scripts by their text, and where the command finds either."""
    monkeypatch.chdir(tmp_path)

    def make(*texts: str) -> tuple[Path, Path, Path]:
        paths = [Path(name) for name in ("app", "first", "second")]
        for path, text in zip(paths, ("", *texts), strict=True):
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)
        return paths[0], paths[1], paths[2]

    return make


def test_builds_that_do_the_same_pass_and_the_second_stays(builds):
    place, first, second = builds("echo a", "echo 'a'")
    check_same_work(Training(("sh app",), None, emulate=True), place, first, second)
    assert place.read_text() == second.read_text()


@pytest.mark.parametrize(("one", "other"), [("echo a", "echo b"), ("exit 0", "exit 3")])
def test_another_output_or_exit_code_is_told_with_the_command(builds, one, other):
    place, first, second = builds(one, other)
    with pytest.raises(InputError, match="does not do the same") as caught:
        check_same_work(Training(("true", "sh app 2"), None, emulate=True), place, first, second)
    assert caught.value.where == "sh app 2"
    assert place.read_text() == second.read_text()


def test_a_program_that_is_never_the_same_tells_nothing(builds):
    place, first, second = builds("cat /proc/sys/kernel/random/uuid", "echo b")
    check_same_work(Training(("sh app",), None, emulate=True), place, first, second)


def test_both_builds_read_what_the_training_reads(builds, tmp_path):
    place, first, second = builds("read -r word; echo $word", "echo given")
    (tmp_path / "in").write_text("given\n")
    training = Training(("sh app",), None, emulate=True, input=tmp_path / "in")
    check_same_work(training, place, first, second)
