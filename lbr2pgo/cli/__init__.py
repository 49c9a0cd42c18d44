"""The command line: one thin module per command.

Exit codes: 0 good; 1 a quality gate refused the profile; 2 bad input, options or surroundings;
3 an error of ours; 128 + n after signal n. `record` passes the program's own exit code on.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Collection, Iterable, Sequence

from lbr2pgo.cli import messages
from lbr2pgo.cli.commands import COMMANDS
from lbr2pgo.cli.own_process import keep_closed_streams
from lbr2pgo.support.errors import Lbr2pgoError, OutputError
from lbr2pgo.support.shortage import expect_room, shortage_of

TYPE_CHECKING = False  # see `lbr2pgo`

if TYPE_CHECKING:
    import argparse
    from types import FrameType, TracebackType

BAD_INPUT, OUR_ERROR, INTERRUPTED = 2, 3, 130


_received: list[int] = []
"""Signals that told this process to end. Their exceptions may be lost: what is interrupted while
NumPy is loaded, for one, becomes an ImportError."""


class Stopped(BaseException):
    """A signal told this process to end; what is unfinished is tidied up on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; gives its exit code."""
    try:
        return _main(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Stopped as stop:
        return 128 + stop.number
    except Exception as error:
        if _received:
            return 128 + _received[0]
        shortage = shortage_of(error)
        if shortage is None:
            return _report(error)
    # Here the error is gone, and all that its frames held: there is memory to say it with.
    return _complain(shortage)


def _main(arguments: Sequence[str] | None) -> int:
    _prepare_streams()
    _stop_tidily()
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _insist
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _tell_unless_told_to_end
    # Millions of small objects are made and hardly one of them in a cycle: a sixth of a short
    # run would go into looking for those.
    gc.set_threshold(1_000_000, 20, 20)
    try:
        args = _parse(list(sys.argv[1:] if arguments is None else arguments))
    except OSError as error:  # help, where it can't be written
        return _unprinted(error)
    messages.configure(args)
    try:
        expect_room()
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except Lbr2pgoError as error:
        return _complain(error)
    except SystemExit:  # rich makes it of a pipe that nobody reads any more
        _drop_output()
        return 0
    except OSError as error:
        if shortage_of(error):
            raise
        return _unprinted(error)


def _parse(words: list[str]) -> argparse.Namespace:
    if "_ARGCOMPLETE" in os.environ:
        _complete()
    if words[:1] == ["help"] or not words:
        words = [*words[1:], "--help"]
    if words == ["--version"]:  # argparse, which answers it elsewhere, takes longest to load
        print(_version(), flush=True)
        sys.exit()
    # Behind a command nothing asks for the names of the others.
    listed = words[:1] if words and words[0] in COMMANDS else COMMANDS
    return _parser(_command(words), listed).parse_args(words)


def _command(words: Sequence[str]) -> list[str]:
    """The command that is among these words, if one is."""
    return [word for word in words if word in COMMANDS][:1]


def _stop_tidily() -> None:
    """Let SIGTERM and SIGHUP end the run as Ctrl-C does: unfinished files go, children too."""

    def stop(number: int, _: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)  # a second one must not disturb the tidying
        _received.append(number)
        raise Stopped(number)

    def interrupt(number: int, frame: FrameType | None) -> None:
        _received.append(number)
        signal.default_int_handler(number, frame)

    _received.clear()
    numbers = (signal.SIGTERM, signal.SIGHUP)
    if threading.current_thread() is threading.main_thread():  # only there it may be asked for
        for number in numbers:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, stop)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, interrupt)


def _insist(dropped: sys.UnraisableHookArgs) -> None:
    """Raise a stop again in a moment if it came where Python lets nothing out, as in callbacks."""
    stop = dropped.exc_value
    if not isinstance(stop, Stopped | KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
        return
    number = stop.number if isinstance(stop, Stopped) else signal.SIGINT

    def send(delay: float) -> None:
        """To the main thread, which runs handlers, and has left the callback by then."""

        def again(_: int, frame: FrameType | None) -> None:
            while frame is not None and frame.f_code is not _insist.__code__:
                frame = frame.f_back
            if frame is not None:  # on a busy machine: still here, where it would be dropped again
                send(2 * delay)
                return
            signal.signal(number, signal.SIG_IGN)
            raise stop

        signal.signal(number, again)
        main_thread = threading.main_thread().ident
        later = threading.Timer(delay, signal.pthread_kill, (main_thread, number))
        later.daemon = True
        later.start()

    if not sys.is_finalizing():
        send(0.01)


def _tell_unless_told_to_end(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print what C code wants to see printed, but not the stop that interrupted it.

    NumPy's modules print what keeps them from loading before they make an ImportError of it.
    """
    if not _received:
        sys.__excepthook__(kind, error, trace)


def _prepare_streams() -> None:
    """Let printing never end the run: streams may be closed, names may hold any bytes."""
    keep_closed_streams()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - until the process ends
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _parser(
    commands: Collection[str] = COMMANDS.keys(), listed: Iterable[str] = COMMANDS
) -> argparse.ArgumentParser:
    """Understands the words of these commands, and only the names of the others that are listed.

    Loading the modules of all commands takes several times as long as that of one.
    """
    from importlib import import_module

    from lbr2pgo.cli.parser import Parser, leaves

    parser = Parser(
        prog="lbr2pgo",
        description="Turn branch-stack samples into compiler profiles, BOLT fdata and reports.",
        examples=(
            "lbr2pgo record -- ./app",
            "lbr2pgo convert perf.data --binary ./app --llvm app.prof",
            "lbr2pgo help convert",
        ),
    )
    parser.add_argument("--version", action="version", version=_version())
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in listed:
        if name in commands:
            import_module(f"lbr2pgo.cli.{name}").add_parser(subparsers)
            for each in leaves(subparsers.choices[name]):
                messages.add_options(each)
        else:
            subparsers.add_parser(name, help=COMMANDS[name], add_help=False)
    return parser


def _version() -> str:
    from lbr2pgo import __version__

    return f"lbr2pgo {__version__}"


def _complete() -> None:
    """Answer a shell that asks how a word may end, and exit."""
    import argcomplete

    words = os.environ.get("COMP_LINE", "").split()
    argcomplete.autocomplete(_parser(_command(words)), exit_method=sys.exit)


def _unprinted(error: OSError) -> int:
    """What could not be printed: nothing that a reader misses who has seen enough."""
    _drop_output()
    if isinstance(error, BrokenPipeError):
        return 0
    return _complain(OutputError(error.strerror or str(error), where=error.filename))


def _drop_output() -> None:
    """Lead what is still to be written nowhere, so that Python does not fail over it at its end."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return  # not a file: nothing is left over


def _complain(error: Lbr2pgoError) -> int:
    from lbr2pgo.support.printable import printable

    print(f"lbr2pgo: error: {printable(error.headline)}", file=sys.stderr)
    if error.cure:
        print(printable(error.cure), file=sys.stderr)
    return error.exit_code


def _report(error: Exception) -> int:
    import traceback

    from lbr2pgo.support.printable import printable

    if os.environ.get("LBR2PGO_TRACEBACK"):
        traceback.print_exc()
    place = traceback.extract_tb(error.__traceback__)[-1]
    print(
        f"lbr2pgo: internal error: {type(error).__name__}: {printable(str(error))} "
        f"({os.path.basename(place.filename)}:{place.lineno})\n"
        "This is a fault of lbr2pgo. Run again with LBR2PGO_TRACEBACK=1 and report what it prints.",
        file=sys.stderr,
    )
    return OUR_ERROR
