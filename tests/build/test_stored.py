from __future__ import annotations

import re
from pathlib import Path

import pytest
from builders.outputs import outputs

from lbr2pgo.build.stored import judge
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.support.errors import InputError

TESTBINS = Path(__file__).parents[2] / "testbins"
INTERP = TESTBINS / "x86-64" / "interp.pie"
SHAPES = TESTBINS / "x86-64" / "shapes.pie"
RECORDING = TESTBINS / "recordings" / "x86-64-interp.pie.perf.data"

_COUNT = re.compile(r"(?m)^ +[0-9.]+: ([0-9]+)")  # of a body line


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with `interp.prof` and `interp.fdata`."""
    folder = tmp_path_factory.mktemp("stored")
    llvm, fdata = folder / "interp.prof", folder / "interp.fdata"
    convert(ConvertOptions((RECORDING,), INTERP, outputs=outputs(llvm=llvm, fdata=fdata)))
    return folder


def test_a_fresh_profile_is_used_without_a_word(made: Path) -> None:
    verdict = judge(made / "interp.prof", INTERP)
    assert (verdict.usable, verdict.warning) == (True, None)


def test_a_missing_profile_means_a_plain_build(tmp_path: Path) -> None:
    verdict = judge(tmp_path / "none.prof", INTERP)
    assert not verdict.usable
    path = tmp_path / "none.prof"
    assert verdict.warning == f"there is no profile {path} yet: this is a plain build"


def test_a_stale_profile_is_used_and_how_stale_it_is_told(made: Path, tmp_path: Path) -> None:
    stale = tmp_path / "stale.prof"
    text = (made / "interp.prof").read_text()
    found = re.search(r"(?m)^run:.*\n(?: .*\n)+", text)
    assert found is not None
    run = found[0]
    moved = re.sub(r"(?m)^ ([0-9]+)", lambda line: f" {(int(line[1]) + 1000) % 65536}", run)
    stale.write_text(text.replace(run, moved))
    verdict = judge(stale, INTERP)
    assert verdict.usable
    assert verdict.warning is not None
    share = re.search(r"no place for ([0-9.]+)% of its counts", verdict.warning)
    assert share is not None
    lost, every = (sum(map(int, _COUNT.findall(part))) for part in (run, text))
    assert float(share[1]) == pytest.approx(100 * lost / every, abs=0.01)


def test_a_profile_of_another_program_is_refused(made: Path) -> None:
    with pytest.raises(InputError, match="the profile of another program") as caught:
        judge(made / "interp.prof", SHAPES)
    assert "next_token" in str(caught.value)


@pytest.mark.parametrize("name", ["interp.fdata", RECORDING])
def test_what_is_no_sample_profile_is_refused(made: Path, name: str) -> None:
    with pytest.raises(InputError, match="no sample profile"):
        judge(made / name, INTERP)
