"""--quiet, --verbose and --color."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.recordings import PIE, RECORDING

STYLE = "\x1b["


def test_quiet_leaves_results_and_errors_only(command, tmp_path: Path) -> None:
    out = tmp_path / "app.prof"
    answer = command("convert", RECORDING, "--binary", PIE, "--llvm", out, "--quiet")
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert out.stat().st_size
    answer = command("convert", tmp_path / "missing", "--binary", PIE, "--quiet")
    assert (answer.code, len(answer.err.splitlines())) == (2, 2)
    table = command("report", RECORDING, "--binary", PIE, "--only", "hot-branches", "--quiet")
    assert "run" in table.out


def test_what_was_written_is_said_with_its_use(command, tmp_path: Path) -> None:
    profile, fdata, page = (tmp_path / name for name in ("app.prof", "app.fdata", "app.html"))
    words = ("convert", RECORDING, "--binary", PIE, "--llvm", profile, "--fdata", fdata)
    lines = [line for line in command(*words).err.splitlines() if line.startswith("wrote ")]
    assert lines == [
        f"wrote {profile} (1.5 kB): clang -O2 -g -fprofile-sample-use={profile}",
        f"wrote {fdata} (3.9 kB): lbr2pgo bolt ELF --fdata {fdata} -o OUT",
    ]
    answer = command("report", RECORDING, "--binary", PIE, "--html", page)
    assert f"wrote {page} (" in answer.err


def test_what_goes_to_a_stream_is_not_announced(command) -> None:
    assert "wrote" not in command("convert", RECORDING, "--binary", PIE, "--llvm", "-").err


def test_verbose_tells_the_stages(command) -> None:
    plain = command("convert", RECORDING, "--binary", PIE)
    verbose = command("convert", RECORDING, "--binary", PIE, "--verbose")
    assert verbose.out == plain.out
    assert len(verbose.err.splitlines()) > len(plain.err.splitlines()) + 2


def test_what_is_said_once_is_no_setting_for_the_next_command(command) -> None:
    command("convert", RECORDING, "--binary", PIE, "--quiet")
    assert command("convert", RECORDING, "--binary", PIE).out


def test_quiet_and_verbose_exclude_each_other(command) -> None:
    assert command("doctor", "--quiet", "--verbose").code == 2


@pytest.fixture
def shown(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """What `convert` prints with these options and this environment, styles and all."""
    from lbr2pgo.cli import main

    def run(*options: str, **environment: str) -> str:
        for name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.setenv(name, environment.get(name, ""))  # is put back at the end
        assert main(["convert", str(RECORDING), "--binary", str(PIE), *options]) == 0
        return capfd.readouterr().out

    return run


def test_styles_are_for_terminals_unless_asked_for(shown) -> None:
    assert STYLE not in shown()
    assert STYLE in shown("--color=always")
    assert STYLE in shown(FORCE_COLOR="1")


def test_no_style_where_it_is_not_wanted(shown) -> None:
    assert STYLE not in shown("--color=never", FORCE_COLOR="1")
