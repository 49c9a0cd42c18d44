from __future__ import annotations

from pathlib import Path

import pytest

FORM = "_ZN1a1bEi:{0}:5\n 1: {0}\nmain:{1}:9\n 1: {1}\nz:9000000:9\n 1: 9000000\n"
OLD, NEW, NEARLY = (
    FORM.format(*counts) for counts in ((900000, 90), (100000, 99000), (900000, 91))
)


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path, Path]:
    old, new = tmp_path / "old.prof", tmp_path / "new.prof"
    old.write_text(OLD)
    new.write_text(NEW)
    return new, old, tmp_path / "out.prof"


def test_it_names_what_changed(command, paths) -> None:
    new, old, output = paths
    answer = command("settle", new, "--onto", old, "-o", output)
    assert answer.code == 0
    assert answer.err.splitlines()[0].startswith(f"wrote {output} (")
    assert answer.err.splitlines()[1].startswith("2 of 3 functions changed: a::b, main")
    assert command("settle", new, "--onto", old, "-o", output, "--quiet").err == ""


def test_it_may_go_to_standard_output(command, paths) -> None:
    _, old, _ = paths
    answer = command("settle", old, "--onto", old, "-o", "-")
    assert answer.out == OLD
    assert answer.err == "0 of 3 functions changed\n"


def test_exact_counts_keep_nothing(command, paths) -> None:
    new, old, output = paths
    new.write_text(NEARLY)
    assert command("settle", new, "--onto", old, "-o", output).err.endswith(
        "0 of 3 functions changed\n"
    )
    answer = command("settle", new, "--onto", old, "-o", output, "--exact")
    assert "1 of 3 functions changed: main" in answer.err
    assert output.read_text() == new.read_text()


def test_what_is_no_profile_is_refused(command, paths) -> None:
    new, old, output = paths
    new.write_text("nothing\n")
    answer = command("settle", new, "--onto", old, "-o", output)
    assert (answer.code, output.exists()) == (2, False)
    assert f"{new}: is no written profile" in answer.err
