"""The progress bar: on a terminal only, after a second only."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builders.recordings import PIE, RECORDING

from lbr2pgo.cli import main, progress


class Terminal:
    """A pseudo-terminal as standard error; remembers what appears on it."""

    def __init__(self) -> None:
        self._ours, theirs = pty.openpty()
        self.stream = os.fdopen(theirs, "w")
        self._shown = b""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self._ours, 4096)
            except OSError:  # Linux: the other side was closed
                return
            self._shown += piece

    def close(self) -> bytes:
        """What was shown."""
        self.stream.close()
        self._reader.join()
        os.close(self._ours)
        return self._shown


Connect = Callable[[], Terminal]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connect]:
    """Connect a terminal; to be called by the test itself, as pytest changes streams before it."""
    connected = []

    def call() -> Terminal:
        connected.append(Terminal())
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr("sys.stderr", connected[-1].stream)
        return connected[-1]

    yield call
    for terminal in connected:
        if not terminal.stream.closed:
            terminal.close()


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    return lambda seconds: monkeypatch.setattr(progress, "_PATIENCE", seconds)


Patience = Callable[[float], None]


def wait_for(bar: progress.SampleProgress) -> None:
    """Until the bar is there."""
    deadline = time.monotonic() + 30
    while bar._bar is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_patience_is_a_second() -> None:
    assert progress._PATIENCE == 1


def test_nothing_is_shown_of_what_is_over_soon(connect: Connect, patience: Patience) -> None:
    terminal = connect()
    patience(60)
    with progress.SampleProgress([]) as bar:
        bar.stage("reading")
        bar(1000)
    assert terminal.close() == b""


def test_what_takes_longer_is_shown_though_nothing_is_reported(
    connect: Connect, patience: Patience
) -> None:
    terminal = connect()
    patience(0.05)
    with progress.SampleProgress([]) as bar:
        bar.stage("opening")
        wait_for(bar)
        time.sleep(0.2)
    assert b"opening" in terminal.close()


def test_samples_and_stages_are_shown(connect: Connect, patience: Patience) -> None:
    terminal = connect()
    patience(0.01)
    with progress.SampleProgress([]) as bar:
        bar(1000)
        wait_for(bar)
        bar(234)
        bar.stage("correlating")
        time.sleep(0.3)  # rich draws ten times a second
    shown = terminal.close()
    assert b"1,234 samples" in shown
    assert b"correlating" in shown


def test_each_stage_counts_its_own_samples_and_fits_80_columns(
    connect: Connect, patience: Patience, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    terminal = connect()
    patience(0.01)
    with progress.SampleProgress([]) as bar:
        for stage in ("read and count", "look at the samples again"):
            bar.stage(stage, 10**9)
            wait_for(bar)
            time.sleep(0.1)
            bar(72_674, 0.5)
            time.sleep(0.3)
        bar.stage("analyse: function")
        bar(0, 0.83)
        time.sleep(0.3)
    shown = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", terminal.close()).decode()
    left = r"0:00:0\d [0-9-]+:[0-9-]+:[0-9-]+"
    assert re.search(rf"samples again .* 50% 72,674 samples, [0-9,]+/s {left}", shown)
    assert re.search(rf"function .* 83% 72,674 samples +{left}", shown)


def test_where_the_size_is_known_the_share_the_rate_and_the_time_left_are_shown(
    connect: Connect, patience: Patience
) -> None:
    terminal = connect()
    patience(0.01)
    with progress.SampleProgress([]) as bar:
        wait_for(bar)
        for hundredth in range(1, 43):
            bar(1000, hundredth / 100)
            time.sleep(0.01)
        time.sleep(0.3)
    shown = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", terminal.close()).decode()
    last = shown.splitlines()[-1].split("\r")[-1] or shown.splitlines()[-1]
    assert re.search(r"42% 42,000 samples, [0-9,]+/s 0:00:0\d 0:00:0\d", shown), last


def test_what_holds_no_samples_is_told_in_bytes(
    connect: Connect, patience: Patience, tmp_path: Path
) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    terminal = connect()
    patience(0.01)
    with progress.SampleProgress([path]) as bar:
        bar.stage("open the inputs", 50_000_000)
        wait_for(bar)
        for hundredth in range(1, 51):
            bar(0, hundredth / 100)
            time.sleep(0.01)
        time.sleep(0.3)
        bar.stage("replay")
        time.sleep(0.3)
    shown = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", terminal.close()).decode()
    assert re.search(r"open the inputs .* 50% 25 MB, [0-9,]+ MB/s 0:00:0\d 0:00:0\d", shown)
    after = shown[shown.index("replay") :]
    assert "%" not in after
    assert " MB" not in after


def test_a_recording_tells_its_time_and_samples(
    connect: Connect, patience: Patience, tool: Callable[[str], str], tmp_path: Path
) -> None:
    tool("qemu-x86_64"), tool("cc")
    patience(0.1)
    terminal = connect()
    spin = ("sh", "-c", "while :; do :; done")
    words = ["record", "--emulate", "-c", "999", "--duration", "2", "-o", str(tmp_path / "x"), "--"]
    assert main([*words, *spin]) == 0
    shown = terminal.close().decode()
    assert "takes 10 to 20 times as long" in shown
    lines = re.findall(r"([0-9.]+) s: ([0-9,]+) samples, [0-9,]+ M instructions", shown)
    assert len(lines) >= 3
    times, samples = zip(*[(float(t), int(n.replace(",", ""))) for t, n in lines], strict=True)
    assert list(times) == sorted(times)
    assert samples[-1] > samples[0]


def test_a_recording_tells_nothing_in_a_pipe(
    patience: Patience,
    tool: Callable[[str], str],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    tool("qemu-x86_64"), tool("cc")
    patience(0.001)
    output = tmp_path / "x"
    assert main(["record", "--emulate", "-o", str(output), "--", "sleep", "0.2"]) == 0
    first, *others = capfd.readouterr().err.splitlines()
    assert first == "Using the software LBR: the software LBR was asked for."
    assert [line.split(" (")[0] for line in others] == [f"wrote {output}"]


def test_nothing_is_shown_where_no_one_watches(
    capsys: pytest.CaptureFixture[str], patience: Patience
) -> None:
    patience(0.001)
    with progress.SampleProgress([]) as bar:
        bar(1000)
        time.sleep(0.1)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_the_bar_is_gone_after_an_error(connect: Connect, patience: Patience) -> None:
    terminal = connect()
    patience(0.01)
    with contextlib.suppress(RuntimeError), progress.SampleProgress([]) as bar:
        wait_for(bar)
        raise RuntimeError
    shown = terminal.close()
    show_cursor, clear_line = b"\x1b[?25h", b"\x1b[2K"
    assert shown.index(show_cursor) < shown.rindex(clear_line)


def test_convert_shows_it(
    connect: Connect, patience: Patience, capsys: pytest.CaptureFixture[str]
) -> None:
    patience(0.001)
    terminal = connect()
    assert main(["convert", str(RECORDING), "--binary", str(PIE)]) == 0
    shown = terminal.close()
    assert b"128 samples" in shown
    assert capsys.readouterr().out.startswith("samples read")


def test_convert_shows_nothing_in_a_pipe(
    patience: Patience, capfd: pytest.CaptureFixture[str]
) -> None:
    patience(0.001)
    assert main(["convert", str(RECORDING), "--binary", str(PIE)]) == 0
    assert capfd.readouterr().err == ""
