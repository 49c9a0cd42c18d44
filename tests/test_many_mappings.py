"""A million mappings or processes cost no more than `support.budget` says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from builders.many_mappings import FAST, MANY_MAPPINGS, among_samples
from builders.recordings import STATIC

from lbr2pgo.support import budget

MANY = 1_000_000
RUN = """
import re, sys, time
from pathlib import Path
from lbr2pgo.cli import main
code = main(sys.argv[1:])
peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())
print(code, int(peak[1]) // 1024, time.process_time())
"""


@pytest.mark.parametrize(
    "case",
    [pytest.param(name, marks=() if name in FAST else pytest.mark.long) for name in MANY_MAPPINGS],
)
def test_a_million_take_what_a_small_file_may(case: str, tmp_path: Path) -> None:
    outputs = []
    for name, extra in (("few", b""), ("many", MANY_MAPPINGS[case](MANY))):
        recording, out = tmp_path / name, tmp_path / f"{name}.fdata"
        recording.write_bytes(among_samples(extra))
        words = ["convert", recording, "--binary", STATIC, "--fdata", out]
        done = subprocess.run(
            [sys.executable, "-c", RUN, *map(str, words)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        code, megabytes, seconds = done.stdout.splitlines()[-1].split()
        assert code == "0", done.stderr
        assert int(megabytes) << 20 <= budget.BYTES
        assert float(seconds) <= 2 * budget.SECONDS, "twice as long while other tests run"
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1] != b""
