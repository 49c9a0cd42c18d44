from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.outputs import outputs

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.pgo.stored import Usability, compare_blocks, judge, judge_recordings
from lbr2pgo.program.program import Program
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software
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
    assert (verdict.usable, verdict.said) == (True, None)


def test_a_missing_profile_means_a_plain_build(tmp_path: Path) -> None:
    verdict = judge(tmp_path / "none.prof", INTERP)
    assert not verdict.usable
    path = tmp_path / "none.prof"
    assert verdict.said == f"there is no profile {path} yet: this is a plain build"


_OWN_LINE = re.compile(r"(?m)^ ([0-9]+)((?:\.[0-9]+)?: )([0-9]+)(.*)$")
"""Of a function itself, not of what is inlined into it."""


def made_stale(text: str, wanted: float) -> tuple[str, float]:
    """The profile with lines moved to where no code is, up to a share of all counts; that share."""
    every, moved = sum(map(int, _COUNT.findall(text))), 0

    def away(line: re.Match[str]) -> str:
        nonlocal moved
        number, between, count, rest = line.groups()
        if (moved + int(count)) / every > wanted:
            return line[0]
        moved += int(count)
        return f" {(int(number) + 1000) % 65536}{between}{count}{rest}"

    return _OWN_LINE.sub(away, text), moved / every


@pytest.mark.parametrize("wanted", [0.15, 0.4, 0.9])
def test_staleness_is_told_then_warned_of_and_then_refused(
    made: Path, tmp_path: Path, wanted: float
) -> None:
    profile = tmp_path / "stale.prof"
    text, share = made_stale((made / "interp.prof").read_text(), wanted)
    profile.write_text(text)
    assert share > {0.15: 0, 0.4: 0.2, 0.9: 0.5}[wanted]
    if share > 0.5:
        with pytest.raises(InputError, match="the profile of another build: "):
            judge(profile, INTERP)
        return
    verdict = judge(profile, INTERP)
    assert (verdict.usable, verdict.is_warning) == (True, share > 0.2)
    assert verdict.said is not None
    told = re.search(r"no place for ([0-9.]+)% of its counts", verdict.said)
    assert told is not None
    assert float(told[1]) == pytest.approx(100 * share, abs=0.01)


def test_a_profile_of_another_program_is_refused(made: Path) -> None:
    with pytest.raises(InputError, match="the profile of another program") as caught:
        judge(made / "interp.prof", SHAPES)
    assert "next_token" in str(caught.value)


@pytest.mark.parametrize("name", ["interp.fdata", RECORDING])
def test_what_is_no_sample_profile_is_refused(made: Path, name: str) -> None:
    with pytest.raises(InputError, match="no sample profile"):
        judge(made / name, INTERP)


SOURCE = """
__attribute__((noinline)) int odd(int n) { return n % 3 ? n % 5 : n % 7 ? 1 : 2; }
int main(int n, char **v) { int s = 0; while (n < 99) s += odd(n++); return s & 1; }
"""
FLAGS = ("-fbasic-block-address-map", "-fuse-ld=lld")


def test_functions_whose_blocks_have_other_numbers_are_named(compiled: Callable[..., str]) -> None:
    first, same, other = (
        Program.open(compiled("clang-22", source, "-O1", *FLAGS))
        for source in (SOURCE, SOURCE.replace("n % 5", "n % 9"), SOURCE.replace("n % 7 ? 1 :", ""))
    )
    assert compare_blocks(first, same) == (2, [])
    assert compare_blocks(first, other) == (2, ["odd"])


def test_a_build_is_not_laid_out_by_a_handful_of_samples(
    compiled: Callable[..., Path], tmp_path: Path, tool: Callable[[str], str]
) -> None:
    tool("qemu-x86_64")
    app = compiled("clang-22", (TESTBINS / "src" / "interp.c").read_text(), "-O2", "-g")

    def recorded(rounds: int, period: int) -> Path:
        output = tmp_path / f"{rounds}.{period}.data"
        record_software(
            RecordOptions(output=output, command=(str(app), str(rounds)), period=period)
        )
        return output

    assert judge_recordings([recorded(1, 1009), recorded(2, 1009)], app) == Usability(True)
    verdict = judge_recordings([recorded(2, 500_009)], app)
    assert (verdict.usable, verdict.is_warning) == (False, True)
    assert re.fullmatch(
        r"not laid out, the recording is of little use: at least 2\d\.\d% of its counts stand "
        r"elsewhere by chance\. Take [\d.]+ times as many samples",
        verdict.said or "",
    )
