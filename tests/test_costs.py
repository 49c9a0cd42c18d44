"""Small files that would cost much are read within a budget, or refused with the reason."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.costly import COSTLY

from lbr2pgo.support import budget

_MEASURED = """
import json, re, resource, sys
from lbr2pgo.cli import main
code = main(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_SELF)
peak = re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())
told = {"code": code, "seconds": used.ru_utime + used.ru_stime, "bytes": int(peak[1]) * 1024}
open(sys.argv[1], "w").write(json.dumps(told))
"""


@pytest.mark.parametrize("make", COSTLY, ids=lambda make: make.__name__)
def test_a_small_file_costs_little(make: Callable[[Path], list[str]], tmp_path: Path) -> None:
    words = make(tmp_path / "perf.data")
    assert sum(f.stat().st_size for f in tmp_path.iterdir()) < 30 << 20
    told = tmp_path / "told.json"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (4 * budget.SECONDS, 4 * budget.SECONDS))

    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, told, *words],
        capture_output=True, text=True, cwd=tmp_path, preexec_fn=limit,
    )  # fmt: skip
    assert told.exists(), done.stderr[-500:]
    cost = json.loads(told.read_text())
    assert cost["code"] == 0 or (cost["code"] == 2 and "error: " in done.stderr), done.stderr
    assert cost["seconds"] < budget.SECONDS
    assert cost["bytes"] < budget.BYTES
