"""Reports of what BOLT reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from builders.outputs import outputs
from builders.recordings import PIE, RECORDING

from lbr2pgo.analyses import hot_functions
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.reports.compare import make_comparison
from lbr2pgo.reports.making import holds_lines_only
from lbr2pgo.support.errors import InputError


def profile(kind: str, tool: Callable[[str], str], folder: Path) -> Path:
    tool("llvm-bolt-22")
    path = folder / kind
    convert(ConvertOptions((RECORDING,), PIE, outputs=outputs(**{kind: path})))
    return path


@pytest.mark.parametrize("kind", ["fdata", "bolt_yaml"])
def test_a_profile_for_bolt_is_reported_as_its_recording_is(
    kind: str, tool: Callable[[str], str], tmp_path: Path
) -> None:
    path = profile(kind, tool, tmp_path)
    assert not holds_lines_only([path])
    found, recorded = functions_of(path), functions_of(RECORDING)
    assert found.keys() <= recorded.keys()
    hottest = [max(shares, key=shares.__getitem__) for shares in (found, recorded)]
    if kind == "fdata":  # BOLT's YAML lacks the functions whose jumps BOLT does not know
        assert hottest[0] == hottest[1]
        assert found[hottest[0]] == pytest.approx(recorded[hottest[0]], abs=0.05)


def functions_of(path: Path) -> dict[object, float]:
    """Share of instructions by function."""
    options = ReportOptions((path,), PIE, only=(hot_functions.NAME,), libraries=False)
    (table,) = make_report(options).tables
    names = [column.name for column in table.columns]
    name, share = names.index("function"), names.index("instructions_share")
    return {row[name]: row[share] for row in table.rows}  # type: ignore[misc]


def test_it_is_compared_with_a_recording(tool: Callable[[str], str], tmp_path: Path) -> None:
    path = profile("fdata", tool, tmp_path)
    report = make_comparison(ReportOptions((path,), PIE), [RECORDING])
    assert report.tables


@pytest.mark.parametrize(
    ("others", "binary", "told"),
    [((), None, "does not say which program"), ((RECORDING,), PIE, "other inputs are recordings")],
)
def test_what_it_can_not_be_reported_with_is_told(
    tmp_path: Path, others: tuple[Path, ...], binary: Path | None, told: str
) -> None:
    path = tmp_path / "app.fdata"
    path.write_text("1 main 10 1 main 20 0 3\n")
    with pytest.raises(InputError, match=told) as caught:
        make_report(ReportOptions((path, *others), binary))
    assert caught.value.where == str(path)
