"""Groups of branches, beside those of `perf report` and beside plain sums."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from builders.evidence import flags, gather_sources
from builders.evidence import program as toy_program
from builders.evidence import source as toy_source
from builders.recordings import PIE, RECORDING, STATIC, STATIC_ENTRY
from builders.sources import Sample

from lbr2pgo.analyses.grouping import KEYS, NEEDS, grouped
from lbr2pgo.analyses.table import Table
from lbr2pgo.cli import main
from lbr2pgo.model.branch_stacks import ABORT, IN_TRANSACTION
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.support.errors import InputError


def recorded(*keys: str) -> Table:
    return make_report(
        ReportOptions((RECORDING,), PIE, libraries=False, sort=keys, top=None)
    ).tables[0]


def toy(*samples: Sample, keys: tuple[str, ...]) -> list[tuple[object, ...]]:
    found = gather_sources([toy_source(*samples)], toy_program(), (), NEEDS)
    return [row[1:] for row in grouped(found.evidence, keys, None).rows]


@pytest.mark.parametrize(
    "keys",
    [
        ("srcline_from", "srcline_to"), ("dso", "mispredict"), ("mispredict",),
        ("cycles", "in_tx", "abort"), ("srcline_from", "mispredict", "cycles"),
    ],
)  # fmt: skip
def test_rows_are_those_of_perf_report(tool, run, tmp_path: Path, keys: tuple[str, ...]) -> None:
    """Of entries that stay within the image: for others perf may have other files' names."""
    binary = tmp_path / "tmp/testbins/x86-64" / PIE.name
    binary.parent.mkdir(parents=True)
    shutil.copy(PIE, binary)
    # perf looks a line up when it compares it with another one, so lines come first.
    shown = run(
        tool("perf"), "report", "-f", "-i", RECORDING, "--symfs", tmp_path, "-n", "--stdio",
        "-t", "|", "--sort", ",".join((*keys, "dso_from", "dso_to")),
    )  # fmt: skip
    theirs: Counter[tuple[str, ...]] = Counter()
    for line in shown.stdout.splitlines():
        row = [field.strip() for field in line.split("|")]
        if row[-2:] == [PIE.name] * 2:
            theirs[tuple(row[2:-2])] += int(row[1])
    ours: Counter[tuple[str, ...]] = Counter()
    for row in recorded(*keys, "dso_from", "dso_to").rows:
        if row[-2:] == (PIE.name, PIE.name):
            ours[tuple("" if value is None else str(value) for value in row[2:-2])] += int(row[1])  # type: ignore[arg-type]
    # Of some rows perf leaves an end without its line.
    common = ours.keys() & theirs.keys()
    assert {key: ours[key] for key in common} == {key: theirs[key] for key in common}
    assert sum(ours[key] for key in common) > 0.99 * sum(theirs.values())
    assert sum(theirs.values()) == sum(ours.values()) > 1000


def test_functions_are_those_of_hot_branches() -> None:
    hot = make_report(
        ReportOptions((RECORDING,), PIE, libraries=False, only=("hot-branches",), top=None)
    ).tables[0]
    expected: Counter[tuple[object, object]] = Counter()
    for row in hot.records():
        expected[row["from_function"], row["to_function"]] += row["count"]  # type: ignore[assignment]
    found = {row[2:]: row[1] for row in recorded("symbol_from", "symbol_to").rows}
    assert found == dict(expected)


def test_every_key_groups_every_entry() -> None:
    total = sum(recorded("dso").column("count"))  # type: ignore[arg-type]
    for key in KEYS:
        table = recorded(key)
        assert sum(table.column("count")) == total  # type: ignore[arg-type]
        assert len(set(table.column(key))) == len(table)


def test_transactions_and_predictions_have_perfs_letters() -> None:
    entry = (0x1016, 0x1005)
    stack = [(*entry, flags(missed=True) | IN_TRANSACTION), (*entry, flags() | ABORT), (*entry, 0)]
    found = toy(Sample(stack, weight=2), keys=("mispredict", "in_tx", "abort"))
    assert sorted(found) == [
        (2, "N", ".", "A"), (2, "N/A", ".", "."), (2, "Y", "T", "."),
    ]  # fmt: skip


def test_the_other_end_may_be_elsewhere() -> None:
    samples = Sample([(0x1020, 0x7FFF0000), (0x7FFF0000, 0x1005), (0x7FFF0000, 0x7FFF0010)])
    assert sorted(map(str, toy(samples, keys=("symbol_from", "symbol_to", "addr_to")))) == [
        "(1, '[outside]', 'main', 4101)", "(1, 'dispatch', '[outside]', None)",
    ]  # fmt: skip


def test_counts_are_grouped_as_far_as_they_tell(tmp_path: Path) -> None:
    path = tmp_path / "traces"
    from_, to, _ = STATIC_ENTRY
    path.write_text(f"B {from_:x} {to:x} 10 3\n")
    report = make_report(ReportOptions((path,), STATIC, sort=("mispredict",)))
    assert [row[1:] for row in report.tables[0].rows] == [(7, "N"), (3, "Y")]


def test_an_unknown_key_is_named_with_those_there_are() -> None:
    with pytest.raises(InputError, match="srcline_from"):
        ReportOptions((RECORDING,), PIE, libraries=False, sort=("colour",))


def test_the_command_takes_keys_as_perf_does(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["report", str(RECORDING), "--binary", str(PIE)]
    assert main([*words, "--sort", "overhead,sym_from,+mispredict", "--format", "csv"]) == 0
    assert "share,count,symbol_from,mispredict" in capfd.readouterr().out
    assert main([*words, "--sort", "colour"]) == 2
