"""A short recording now and then; what takes it stands in for perf and for the clock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lbr2pgo.recorders.continuous import Rotation, record_continuously, recordings
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.support.errors import InputError, OutputError

NOON = 1_795_348_800.0  # 2026-11-22 12:00 UTC


class Host:
    """Time that passes by sleeping and recording, until enough was recorded."""

    def __init__(self, recordings: int, *, code: int = 0, interrupts_while: str = "asleep") -> None:
        self.now, self.left, self.code = NOON, recordings, code
        self.interrupts_while = interrupts_while
        self.at: list[float] = []
        self.asked: list[RecordOptions] = []

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        if self.left == 0 and self.interrupts_while == "asleep":
            raise KeyboardInterrupt
        self.now += seconds

    def record(self, options: RecordOptions) -> int:
        assert options.duration is not None
        self.asked.append(options)
        self.at.append(self.now)
        self.left -= 1
        options.output.write_text(str(self.now))
        is_cut = self.left == 0 and self.interrupts_while == "recording"
        self.now += 1 if is_cut else options.duration
        return self.code

    def run(self, output: Path, rotation: Rotation, **options: object) -> int:
        wanted = RecordOptions(output=output, command=(), **{"all_cpus": True, **options})  # type: ignore[arg-type]
        return record_continuously(
            wanted, rotation, self.record, sleep=self.sleep, clock=lambda: self.now
        )


def test_each_hour_is_recorded_once_and_the_newest_files_are_kept(tmp_path: Path) -> None:
    host, output = Host(50), tmp_path / "perf[1].data"
    (tmp_path / "perf[1].data.old").touch()
    assert host.run(output, Rotation(keep=24)) == 0
    hours = [int((at - NOON) // 3600) for at in host.at]
    assert hours == list(range(50))
    assert all((at - NOON) % 3600 <= 3570 for at in host.at)
    assert len({round((at - NOON) % 3600) for at in host.at}) > 10
    kept = recordings(output)
    assert [path.read_text() for path in kept] == [str(at) for at in host.at[-24:]]
    assert len(list(tmp_path.iterdir())) == 25
    assert kept[0].name.startswith("perf[1].data.20261123T")
    assert {options.duration for options in host.asked} == {30.0}


def test_an_interrupt_of_perf_ends_it_and_what_was_recorded_stays(tmp_path: Path) -> None:
    host = Host(2, interrupts_while="recording")
    assert host.run(tmp_path / "p", Rotation()) == 0
    assert len(recordings(tmp_path / "p")) == 2


def test_a_recording_that_fails_ends_it_with_its_code(tmp_path: Path) -> None:
    host = Host(3, code=129)
    assert host.run(tmp_path / "p", Rotation()) == 129
    assert not recordings(tmp_path / "p")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rotation(every=30, seconds=30), "30 seconds of each 30"),
        (lambda: Rotation(every=float("nan")), "can't be recorded"),
        (lambda: Rotation(keep=0), "no file would be kept"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], Rotation], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_only_what_runs_already_is_recorded_to_files(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="standard output"):
        Host(1).run(Path("-"), Rotation())
    options = RecordOptions(output=tmp_path / "p", command=("true",))
    with pytest.raises(InputError, match="a command ends"):
        record_continuously(options, Rotation(), Host(1).record)
