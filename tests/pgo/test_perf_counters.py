"""What `perf stat` wrote elsewhere, and what it counts on any machine."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from lbr2pgo.pgo.perf_counters import (
    EVENTS,
    Countable,
    EventCount,
    count_events,
    countable,
    read_stat,
    refusal,
)

# Lines of perf stat -x, on an AMD processor whose counters took turns.
MULTIPLEXED = """# started on Fri Oct  2 21:45:16 2026

28794.62,msec,task-clock:u,28794624220,100.00,0.996,CPUs utilized
319218186844,,instructions:u,24680525338,85.00,2.62,insn per cycle
,,,,,0.02,stalled cycles per insn
121617078441,,cycles:u,24676893860,85.00,4.224,GHz
5372937733,,stalled-cycles-frontend:u,24686807300,85.00,4.42,frontend cycles idle
34184081989,,branches:u,24682372630,85.00,1.187,G/sec
1042705531,,branch-misses:u,24680766066,85.00,3.05,of all branches
<not counted>,,iTLB-load-misses:u,0,0.00,,
"""
# Of a machine whose counters were free, which can't count one of them.
FREE = """406089353,,cycles,67487307277,100.00,,
<not supported>,,L1-icache-loads,0,100.00,,
12054829,,L1-icache-load-misses,67484973460,100.00,,
"""
# Of programs that moved between two kinds of cores, or ran on one of them alone.
MOVED = """62,,page-faults,173176999,100.00,,
100166,,cpu_atom/dTLB-load-misses/,527314,0.00,,
654,,cpu_core/dTLB-load-misses/,172649685,99.00,,
133119427,,cpu_atom/cycles/,527314,0.00,,
812254473,,cpu_core/cycles/,172649685,99.00,,
"""
ON_ONE_KIND = """0.65,msec,task-clock:u,648266,100.00,0.534,CPUs utilized
775564,,cpu_atom/cycles/u,276334,42.00,1.196,GHz
<not counted>,,cpu_core/cycles/u,0,0.00,,
99137,,cpu_atom/branches/u,648266,100.00,152.926,M/sec
<not counted>,,cpu_core/branches/u,0,0.00,,
,648266,100.00,,,24.0,%  tma_frontend_bound
"""


def written(event: str, value: int, share: float, run: float) -> str:
    """A row of a table, as perf writes it with -x, of a run of so many milliseconds."""
    return f"{value},,{event},{run * 1e4 * share:.0f},{share:.2f},,\n"


# Tables that kernel developers showed, of a Skylake and of the larger cores of an Alder Lake.
SKYLAKE = "".join(
    written(*row, 1222.38)
    for row in (
        ("cycles:u", 774445184, 49.61), ("instructions:u", 1640969811, 59.67),
        ("branches:u", 302052148, 59.69), ("branch-misses:u", 1807718, 59.68),
        ("idq_uops_not_delivered.core:u", 536580469, 60.33),
    )
)  # fmt: skip
ALDER_LAKE = "".join(
    written(*row, 1005.47)
    for row in (
        ("cpu_core/L1-icache-load-misses/", 4493189, 33.34),
        ("cpu_core/iTLB-load-misses/", 37655, 33.32),
    )
)
SLASHES = "1636626250,,cpu_core/branches:u/,7343278000,100.00,222.348,M/sec\n"
"""As newer versions of perf write names."""


def test_recorded_outputs_are_read() -> None:
    assert read_stat(MULTIPLEXED) == {
        "task-clock": EventCount(28794.62, 1.0),
        "instructions": EventCount(319218186844, 0.85),
        "cycles": EventCount(121617078441, 0.85),
        "stalled-cycles-frontend": EventCount(5372937733, 0.85),
        "branches": EventCount(34184081989, 0.85),
        "branch-misses": EventCount(1042705531, 0.85),
    }
    assert read_stat(FREE) == {
        "cycles": EventCount(406089353, 1.0),
        "L1-icache-load-misses": EventCount(12054829, 1.0),
    }
    assert read_stat(ON_ONE_KIND) == {
        "task-clock": EventCount(0.65, 1.0), "cycles": EventCount(775564, 0.42),
        "branches": EventCount(99137, 1.0),
    }  # fmt: skip
    assert read_stat(SLASHES) == {"branches": EventCount(1636626250, 1.0)}


def test_kinds_of_cores_are_weighed_by_the_time_on_each() -> None:
    """The smaller ones counted 0.3 % of the run; their extrapolation is 105 times all misses."""
    found = read_stat(MOVED)
    both = 173176999
    misses = (100166 * 527314 + 654 * 172649685) / both
    assert found["dTLB-load-misses"].value == pytest.approx(misses) == pytest.approx(957, abs=1)
    assert found["cycles"].value == pytest.approx(810_186_524, rel=1e-3)
    assert found["cycles"].share == pytest.approx(0.99)


def test_there_is_a_recorded_value_of_every_event_that_is_asked_for() -> None:
    found: dict[str, EventCount] = {}
    for text in (MULTIPLEXED, FREE, SKYLAKE, ALDER_LAKE):
        found |= read_stat(text)
    assert all(count.value > 0 for count in found.values())
    names = {name for names in EVENTS for name in names}
    assert read_stat(SKYLAKE).keys() <= names
    assert names - found.keys() == {"idq_bubbles.core"}  # the newer name of the second
    assert found["iTLB-load-misses"] == EventCount(37655, pytest.approx(0.3332))


# What perf said, at its level of kernel.perf_event_paranoid, in a container, and before 5.8.
LIMITED = """Error:
Access to performance monitoring and observability operations is limited.
Consider adjusting /proc/sys/kernel/perf_event_paranoid setting to open
access to performance monitoring and observability operations for processes
without CAP_PERFMON, CAP_SYS_PTRACE or CAP_SYS_ADMIN Linux capability.
More information can be found at 'Perf events and tool security' document:
https://www.kernel.org/doc/html/latest/admin-guide/perf-security.html
perf_event_paranoid setting is {level}:
  -1: Allow use of (almost) all events by all users
"""
NO_PERMISSION = """Error:
No permission to enable cycles:u event.

"""
OLDER = """Error:
You may not have permission to collect stats.

Consider tweaking /proc/sys/kernel/perf_event_paranoid,
which controls use of the performance events system by
unprivileged users (without CAP_SYS_ADMIN).

The current value is 3:
"""
NO_KERNEL = """WARNING: perf not found for kernel 6.8.0-45

"""
BARRED = "which bars you from counting (sudo sysctl kernel.perf_event_paranoid=2)"


@pytest.mark.parametrize(
    ("stat", "said", "why"),
    [
        ("", LIMITED.format(level=4), f"kernel.perf_event_paranoid is 4, {BARRED}"),
        ("", OLDER, f"kernel.perf_event_paranoid is 3, {BARRED}"),
        ("", LIMITED.format(level=2), "perf has no permission: does a container or a security"),
        ("", NO_PERMISSION, "perf has no permission: does a container or a security"),
        ("<not supported>,,cycles:u,0,100.00,,\n", "", "perf says <not supported>: a virtual"),
        ("<not counted>,,cycles:u,0,0.00,,\n", "", "perf says <not counted>: a virtual"),
        ("", NO_KERNEL, "perf says: WARNING: perf not found for kernel 6.8.0-45"),
        ("", "", "perf says nothing"),
    ],
)
def test_why_nothing_is_counted_is_told_by_what_perf_said(stat: str, said: str, why: str) -> None:
    assert refusal(stat, said).startswith(why)


def test_this_machine_counts_something_or_perf_says_why_not(tool: Callable[[str], str]) -> None:
    tool("perf")
    found = countable(EVENTS)
    assert bool(found.events) != bool(found.refusal)
    unknown = countable((("no-such-event",),))
    assert unknown == Countable((), "perf says: event syntax error: 'no-such-event:u'")


def test_perf_counts_what_this_machine_can(tool: Callable[[str], str], tmp_path: Path) -> None:
    tool("perf")
    asked = (("no-such-event", "page-faults"), ("task-clock", "page-faults"), ("no-such-event",))
    assert countable(asked) == Countable(("page-faults", "task-clock"))
    (tmp_path / "in").write_text("x" * 5_000_000)
    seen = tmp_path / "seen"
    command = ("sh", "-c", f"cat > {shlex.quote(str(seen))}")
    found = count_events(command, tmp_path / "in", ("page-faults", "task-clock"))
    assert found.keys() == {"page-faults", "task-clock"}
    assert found["page-faults"].value > 10
    assert seen.stat().st_size == 5_000_000


def test_without_perf_nothing_is_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert countable((("page-faults",),)) == Countable((), "perf is not installed")
