"""What `perf stat` wrote elsewhere, and what it counts on any machine."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from lbr2pgo.pgo.perf_counters import EventCount, count_events, countable, read_stat

# Lines of perf stat -x, on an AMD processor whose counters took turns.
MULTIPLEXED = """# started on Fri Oct  2 21:45:16 2026

28794.62,msec,task-clock:u,28794624220,100.00,0.996,CPUs utilized
319218186844,,instructions:u,24680525338,85.00,2.62,insn per cycle
,,,,,0.02,stalled cycles per insn
121617078441,,cycles:u,24676893860,85.00,4.224,GHz
5372937733,,stalled-cycles-frontend:u,24686807300,85.00,4.42,frontend cycles idle
1042705531,,branch-misses:u,24680766066,85.00,3.05,of all branches
<not counted>,,iTLB-load-misses:u,0,0.00,,
"""
# Of a machine whose counters were free, which can't count one of them.
FREE = """406089353,,cycles,67487307277,100.00,,
<not supported>,,L1-icache-loads,0,100.00,,
12054829,,L1-icache-load-misses,67484973460,100.00,,
"""
# Of one with two kinds of cores, one of which the run never saw.
HYBRID = """3,,cpu_core/branch-misses/u,1,100.00,,
2,,cpu_atom/branch-misses/u,1,50.00,,
4,,cpu_core/cycles/u,1,100.00,,
<not counted>,,cpu_atom/cycles/u,0,0.00,,
"""


def test_recorded_outputs_are_read() -> None:
    assert read_stat(MULTIPLEXED) == {
        "task-clock": EventCount(28794.62, 1.0),
        "instructions": EventCount(319218186844, 0.85),
        "cycles": EventCount(121617078441, 0.85),
        "stalled-cycles-frontend": EventCount(5372937733, 0.85),
        "branch-misses": EventCount(1042705531, 0.85),
    }
    assert read_stat(FREE) == {
        "cycles": EventCount(406089353, 1.0),
        "L1-icache-load-misses": EventCount(12054829, 1.0),
    }
    assert read_stat(HYBRID) == {
        "branch-misses": EventCount(5, 0.5), "cycles": EventCount(4, 1.0)
    }  # fmt: skip


def test_perf_counts_what_this_machine_can(tool: Callable[[str], str], tmp_path: Path) -> None:
    tool("perf")
    assert countable(("page-faults", "no-such-event")) == ("page-faults",)
    (tmp_path / "in").write_text("x" * 5_000_000)
    seen = tmp_path / "seen"
    command = ("sh", "-c", f"cat > {shlex.quote(str(seen))}")
    found = count_events(command, tmp_path / "in", ("page-faults", "task-clock"))
    assert found.keys() == {"page-faults", "task-clock"}
    assert found["page-faults"].value > 10
    assert seen.stat().st_size == 5_000_000


def test_without_perf_nothing_is_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert countable(("page-faults",)) == ()
