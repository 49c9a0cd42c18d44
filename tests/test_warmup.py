import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTBINS = Path(__file__).parents[1] / "testbins"
NOTICE = "compiling loops"


def run(cache: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "lbr2pgo", *map(str, arguments)]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_after_warmup_no_conversion_compiles_anything(tmp_path: Path) -> None:
    warmed = run(tmp_path, "warmup")
    assert warmed.returncode == 0
    assert NOTICE in warmed.stderr
    assert str(tmp_path) in warmed.stdout
    assert run(tmp_path, "warmup").stderr == ""

    recording = TESTBINS / "recordings" / "x86-64-interp.pie.perf.data"
    text = tmp_path / "perf.txt"
    with text.open("wb") as out:
        script = ["perf", "script", "-i", str(recording), "-F", "ip,brstack", "--show-mmap-events"]
        subprocess.run(script, stdout=out, stderr=subprocess.DEVNULL, check=True)
    for profile in (recording, text):
        done = run(
            tmp_path, "convert", profile, "--binary", TESTBINS / "x86-64" / "interp.pie",
            "--llvm", tmp_path / "prof", "--fdata", tmp_path / "fdata",
        )  # fmt: skip
        assert done.returncode == 0
        assert NOTICE not in done.stderr


def test_warmup_says_that_nothing_can_be_kept(tmp_path: Path) -> None:
    """Checked before anything is compiled, which would be in vain."""
    occupied = tmp_path / "file"
    occupied.touch()
    refused = run(occupied / "cache", "warmup")
    assert refused.returncode == 2
    assert "no directory for them can be written" in refused.stderr
    assert NOTICE not in refused.stderr
