"""What every command shares: exit codes, messages, pipes, and `python -m lbr2pgo`."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from builders.recordings import PIE, RECORDING

import lbr2pgo
from lbr2pgo import cli
from lbr2pgo.cli.commands import COMMANDS

MODULE = (sys.executable, "-m", "lbr2pgo")


def start(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    command = [*MODULE, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload,no-any-return]


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch, command):
    """Run a command that ends with an exception of ours."""

    def run(error: BaseException):
        def raise_it(*_: object) -> None:
            raise error

        monkeypatch.setattr("lbr2pgo.conversion.convert", raise_it)
        return command("convert", RECORDING, "--binary", PIE)

    return run


def test_the_module_is_the_command(tmp_path: Path) -> None:
    script = shutil.which("lbr2pgo", path=os.path.dirname(sys.executable))
    assert script is not None, "the package is not installed"
    words = ["convert", str(RECORDING), "--binary", str(PIE), "--fdata"]
    by_script = subprocess.run(
        [script, *words, str(tmp_path / "a")], capture_output=True, text=True
    )
    by_module = start(*words, tmp_path / "b")
    assert by_script.returncode == by_module.returncode == 0
    assert by_script.stdout == by_module.stdout
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_version_is_the_package_s(command) -> None:
    assert command("--version").out == f"lbr2pgo {lbr2pgo.__version__}\n"


def test_help_is_there_for_what_stands_below_a_command(command) -> None:
    assert command("help", "dump", "cfg").out.startswith("usage: lbr2pgo dump cfg ")
    assert command("help").out == command("--help").out


def test_every_help_has_examples_that_can_be_run() -> None:
    parser = cli._parser()
    (action,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    for name, subparser in {"": parser, **action.choices}.items():
        examples = subparser.examples
        assert examples or name == "help"
        for example in examples:
            calls = re.findall(r"lbr2pgo [^|)#]+", example)
            assert calls
            for call in calls:
                parser.parse_args(shlex.split(call)[1:])


@pytest.mark.parametrize(
    "words",
    [
        ("frobnicate",),
        ("convert",),
        ("convert", "x", "--binary"),
        ("convert", "--binary", "x"),
        ("convert", "x", "--binary", "x", "--pid", "many"),
        ("convert", "x", "--binary", "x", "--llvm-format", "json"),
        ("dump",),
        ("dump", "everything"),
    ],
)
def test_wrong_words_end_with_2_and_lead_to_the_help(command, words: tuple[str, ...]) -> None:
    answer = command(*words)
    assert (answer.code, answer.out) == (2, "")
    what, where = answer.err.splitlines()
    assert what.startswith("lbr2pgo")
    assert where.startswith("See `lbr2pgo")
    help_words = where.split("`")[1].split()[1:]
    assert command(*help_words).code == 0


def test_an_error_of_ours_asks_to_be_reported(fails, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LBR2PGO_TRACEBACK", raising=False)
    answer = fails(RuntimeError("half-way\x1b[31m"))
    assert answer.code == 3
    assert answer.err.startswith(
        r"lbr2pgo: internal error: RuntimeError: half-way\x1b[31m (test_main.py:"
    )
    assert "Run again with LBR2PGO_TRACEBACK=1 and report what it prints." in answer.err


def test_a_traceback_is_printed_on_request(fails, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LBR2PGO_TRACEBACK", "1")
    with pytest.raises(AssertionError, match="Traceback"):  # the fixture allows none
        fails(RuntimeError("half-way"))


def test_an_interrupt_ends_quietly(fails) -> None:
    answer = fails(KeyboardInterrupt())
    assert (answer.code, answer.out, answer.err) == (130, "", "")


def test_trouble_with_the_surroundings_is_no_fault_of_ours(fails) -> None:
    answer = fails(OSError(28, "No space left on device", "/tmp/spool"))
    assert answer.code == 2
    assert answer.err == "lbr2pgo: error: /tmp/spool: No space left on device\n"


@pytest.mark.parametrize(
    "words",
    [
        ("convert", RECORDING, "--binary", PIE),
        ("convert", RECORDING, "--binary", PIE, "--preaggregated", "-"),
        ("dump", "stacks", RECORDING),
        ("dump", "disasm", RECORDING, "--binary", PIE, "--function", "run"),
    ],
)
def test_a_reader_that_goes_away_is_no_error(words: tuple[object, ...]) -> None:
    process = subprocess.Popen(
        [*MODULE, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    # The first run after an installation says that it compiles.
    error = "".join(line for line in process.stderr if "compiling loops" not in line)
    code = process.wait()
    if "-" in words:
        assert (code, error.count("error")) == (2, 1)  # an output that can't be written
        assert "The program that reads the pipe has ended." in error
    else:
        assert (code, error) == (0, "")


@pytest.mark.parametrize(
    "words",
    [
        ("convert", RECORDING, "--binary", PIE),
        ("dump", "stacks", RECORDING),
        ("help",),
        ("convert", "--help"),
        ("--version",),
        ("completion", "bash"),
    ],
)
def test_a_full_disk_behind_standard_output(words: tuple[object, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*MODULE, *map(str, words)], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_closed_standard_streams(tmp_path: Path) -> None:
    """As under a daemon, `>&-`."""
    words = [*MODULE, "convert", RECORDING, "--binary", PIE, "--fdata", tmp_path / "out"]
    line = " ".join(map(str, words))
    done = subprocess.run(f"{line} >&- 2>&- <&-", shell=True)
    assert done.returncode == 0
    assert (tmp_path / "out").stat().st_size


@pytest.mark.parametrize(
    ("words", "closed", "says"),
    [
        ((RECORDING, "--llvm", "-"), ">&-", "-: can't be written"),
        ((RECORDING, "--fdata", "/dev/stdout"), ">&-", "/dev/stdout: can't be written"),
        ((RECORDING, "--summary-json", "-"), ">&-", "-: can't be written"),
        (("-",), "<&-", "-: can't be read: standard input is closed"),
    ],
)
def test_a_closed_stream_that_is_needed_is_an_error(
    words: tuple[object, ...], closed: str, says: str
) -> None:
    """Whatever file took its number would be written or read otherwise."""
    line = " ".join(map(str, [*MODULE, "convert", "--binary", PIE, *words]))
    done = subprocess.run(f"{line} {closed}", shell=True, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"lbr2pgo: error: {says}" in done.stderr


def test_an_ascii_terminal_is_no_obstacle() -> None:
    done = start(
        "convert", RECORDING, "--binary", PIE, "--pid", 1,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"},
    )  # fmt: skip
    assert done.returncode == 2
    assert "the profile would be empty" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_manual_page_is_made_of_the_help(tmp_path: Path, run, tool) -> None:
    page = tmp_path / "lbr2pgo.1"
    script = os.path.join(os.path.dirname(sys.executable), "argparse-manpage")
    run(script, "--module", "lbr2pgo.cli", "--function", "_parser", "--project-name", "lbr2pgo",
        "--prog", "lbr2pgo", "--output", page)  # fmt: skip
    shown = run(tool("groff"), "-man", "-ww", "-Kutf8", "-Tutf8", "-P-cbou", page)
    assert shown.stderr == ""
    text = " ".join(shown.stdout.split())
    for name in COMMANDS:
        assert f"'lbr2pgo {name}'" in text
    assert "lbr2pgo convert perf.data --binary ./app --llvm app.prof" in text


SWALLOWED = """
import ctypes, os, signal, sys
import lbr2pgo.cli as cli

def in_python():
    try:
        os.kill(os.getpid(), {number})
    except BaseException:
        pass

def in_c():
    ctypes.pythonapi.PyRun_SimpleString(b"import os; os.kill(os.getpid(), {number})")  # prints it

def swallow(args):
    {where}()
    raise ImportError("as NumPy makes of it")

cli._parse = lambda words: type("Args", (), {{"run": staticmethod(swallow)}})
cli.messages.configure = lambda args: None
sys.exit(cli.main([]))
"""


@pytest.mark.parametrize("where", ["in_python", "in_c"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_whose_exception_a_library_swallows_still_ends_the_run_quietly(
    number: int, where: str
) -> None:
    code = SWALLOWED.format(number=int(number), where=where)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (128 + number, "")


DROPPED = """
import os, signal, sys, threading, time
import lbr2pgo.cli as cli

class Timer(threading.Timer):
    def start(self):
        super().start()
        time.sleep({busy})

threading.Timer = Timer

class Callback:
    def __del__(self):
        os.kill(os.getpid(), {number})

def run(args):
    Callback()
    time.sleep(20)

cli._parse = lambda words: type("Args", (), {{"run": staticmethod(run)}})
cli.messages.configure = lambda args: None
sys.exit(cli.main([]))
"""


@pytest.mark.parametrize("busy", [0, 0.1], ids=["idle machine", "busy machine"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_comes_where_python_lets_nothing_out_ends_the_run(
    number: int, busy: float
) -> None:
    code = DROPPED.format(number=int(number), busy=busy)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=15)
    assert (done.returncode, done.stderr) == (128 + number, "")


def test_python_looks_through_nothing_that_was_loaded_when_it_ends() -> None:
    code = (
        "import atexit, gc, sys\n"
        "atexit.register(lambda: print(len(gc.get_objects()), file=sys.stderr))\n"
        "from lbr2pgo.__main__ import command\n"
        "command()\n"
    )
    words = [sys.executable, "-c", code, "dump", "cfg", "--binary", PIE, "--function", "main"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    assert "main" in done.stdout, done.stderr
    assert int(done.stderr) < 100
