from __future__ import annotations

from pathlib import Path

import pytest

from lbr2pgo.pgo import training as module
from lbr2pgo.pgo.training import (
    Training,
    make_profiles,
    record_all,
    recordings,
    walks_frame_pointers,
)
from lbr2pgo.profiles.bolt.fdata.format import FdataOutput
from lbr2pgo.profiles.llvm.format import LlvmOutput
from lbr2pgo.recorders.hardware import Choice
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.sources.series import open_recordings
from lbr2pgo.support.errors import InputError

INTERP = Path(__file__).parents[2] / "testbins" / "x86-64" / "interp.pie"


def test_a_run_through_a_shell_is_recorded_and_converted(tmp_path: Path) -> None:
    said: list[str] = []
    recording, llvm, fdata = tmp_path / "perf.data", tmp_path / "prof", tmp_path / "fdata"
    training = Training((f"echo 1 | xargs {INTERP} > {tmp_path}/out",), period=1009, emulate=True)
    record_all(training, recording, said.append)
    assert (tmp_path / "out").read_text().startswith("checksum")
    make_profiles([recording], INTERP, said.append, [LlvmOutput(llvm)])
    make_profiles([recording], INTERP, said.append, [FdataOutput(fdata)])
    assert "\nwalk:" in llvm.read_text()
    assert " walk" in fdata.read_text()
    assert "--emulate -c 1009" in said[0]
    assert "the software LBR was asked for" in said[1]
    converted = [line for line in said if "lbr2pgo convert" in line]
    assert [line.split()[-2:] for line in converted] == [
        ["--llvm", str(llvm)],
        ["--fdata", str(fdata)],
    ]


def test_a_training_run_that_fails_makes_no_profile(tmp_path: Path) -> None:
    training = Training(("exit 4;",), period=None, emulate=True)
    with pytest.raises(InputError, match="the training run failed with exit code 4"):
        record_all(training, tmp_path / "perf.data", lambda _: None)


def test_hardware_is_used_where_there_is_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Machines that test this have no branch records: what perf is asked for, and its exit code.
    asked: list[RecordOptions] = []
    said: list[str] = []

    def record_hardware(_machine: object, options: RecordOptions, watch: object) -> int:
        asked.append(options)
        return 4

    monkeypatch.setattr(module, "choose_recorder", lambda *_: Choice(True, "this machine has LBR"))
    monkeypatch.setattr(module, "record_hardware", record_hardware)
    with pytest.raises(InputError, match="exit code 4"):
        record_all(Training(("./app 1",), None, emulate=False), tmp_path / "perf.data", said.append)
    assert said == [
        f"   lbr2pgo record -o {tmp_path / 'perf.data'} -- ./app 1",
        "   with perf: this machine has LBR",
    ]
    assert walks_frame_pointers(Training(("./app 1",), None, emulate=False, call_graph=True))
    assert not walks_frame_pointers(Training(("./app 1",), None, emulate=False))
    (options,) = asked
    assert (options.command, options.output) == (("./app", "1"), tmp_path / "perf.data")


def test_commands_share_samples_and_each_period_adapts(tmp_path: Path) -> None:
    said: list[str] = []
    commands = tuple(f"{INTERP} {scale}" for scale in ("1", "4"))
    training = Training(commands, None, emulate=True)
    longest = record_all(training, tmp_path / "perf.data", said.append)
    recorded = open_recordings(recordings(training, tmp_path / "perf.data"))
    periods = [each.source.info.events[0].period for each in recorded]
    assert longest == max(filter(None, periods))
    assert [line.split(" -o ")[0].strip() for line in said if "record" in line] == [
        f"lbr2pgo record --emulate -c 37 --samples {(1 << 18) // 2}"
    ] * 2
    assert all(period and period % 37 == 0 for period in periods)
