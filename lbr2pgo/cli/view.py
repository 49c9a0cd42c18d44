"""`lbr2pgo view`: the page of a recording, at once in the browser."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from lbr2pgo.cli.commands import COMMANDS
from lbr2pgo.cli.messages import say, warn
from lbr2pgo.cli.own_process import prepare
from lbr2pgo.cli.parser import section, whole_number
from lbr2pgo.cli.reporting import (
    PAGE_TOP,
    SHOWN,
    add_inputs,
    add_page_functions,
    add_shown,
    for_people,
    read_report,
    report_options,
)
from lbr2pgo.support.errors import InputError

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

    from lbr2pgo.reports.build import ReportOptions
    from lbr2pgo.reports.model import FunctionView, Report

_LOOPBACK = "127.0.0.1"
_FUNCTION = re.compile(r"/f-([0-9a-f]{1,16})")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "view",
        help=COMMANDS["view"],
        description="Write the page of `lbr2pgo report --html` to a temporary place and open it.",
        examples=(
            "lbr2pgo view perf.data",
            "lbr2pgo view perf.data --binary ./app",
            "lbr2pgo view perf.data --serve 8000",
        ),
    )
    add_inputs(parser)
    where = section(parser, SHOWN).add_mutually_exclusive_group()
    where.add_argument(
        "--serve", type=whole_number, metavar="PORT",
        help="serve the page on this port of the loopback interface instead (0: any free one), "
        "until Ctrl-C: for machines without a browser, through ssh -L",
    )  # fmt: skip
    where.add_argument(
        "--terminal", action="store_true",
        help="walk through functions, code and branches in the terminal, with the keys of perf's "
        "browser (h shows them)",
    )  # fmt: skip
    add_page_functions(parser)
    add_shown(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Make the page, and open or serve it, or walk through the report in the terminal."""
    prepare()
    if args.terminal:
        return _browse(args)
    from lbr2pgo.reports import html

    report = for_people(args, read_report(args, _options(args)))
    warn(report.notes)
    if args.serve is None:
        _open(html.render(report))
        return 0
    functions = _Functions(args, report)
    with serving(html.render(report, asks=True), args.serve, functions.packed) as server:
        say(f"serving http://{_LOOPBACK}:{server.server_port}/ until Ctrl-C")
        server.serve_forever()
    return 0


def _browse(args: argparse.Namespace) -> int:
    from lbr2pgo.support.extras import extra

    extra("textual", "terminal", "view --terminal")  # before anything is read
    if not (sys.stdin.isatty() and sys.stderr.isatty()):  # where textual reads and draws
        raise InputError(
            "view --terminal needs a terminal", cure="lbr2pgo report prints to files and pipes."
        )
    from lbr2pgo.reports.browser import Browser

    report = for_people(args, read_report(args, _options(args)))
    warn(report.notes)
    Browser(report, _Functions(args, report).view).run()
    return 0


def _options(args: argparse.Namespace) -> ReportOptions:
    return report_options(args, top=PAGE_TOP, views=max(args.functions, 1), source=True)


class _Functions:
    """The code of all functions, worked out when it is asked for."""

    def __init__(self, args: argparse.Namespace, report: Report) -> None:
        self._report, self._is_readable = report, not args.no_demangle
        self._lock = Lock()  # evidence remembers what it was asked

    def view(self, start: int) -> FunctionView | None:
        """None where no function that ran starts there."""
        from lbr2pgo.reports.readable import readable_view

        with self._lock:
            found = self._report.open_function and self._report.open_function(start)
            return readable_view(found) if found and self._is_readable else found

    def packed(self, start: int) -> str | None:
        """As pages have it."""
        from lbr2pgo.reports.html import packed
        from lbr2pgo.reports.page_code import function_data

        view = self.view(start)
        return None if view is None else packed(function_data(view))


def _open(page: str) -> None:
    """Browsers read the file after we are gone, so it stays: the system tidies its place."""
    import webbrowser
    from tempfile import mkdtemp

    path = Path(mkdtemp(prefix="lbr2pgo-"), "report.html")
    path.write_text(page, encoding="utf-8")
    if webbrowser.open(path.as_uri()):
        say(f"opened {path}")
    else:
        say(f"wrote {path}: there is no browser here; --serve PORT lets one elsewhere read it")


@contextmanager
def serving(
    page: str, port: int, function: Callable[[int], str | None] = lambda _: None
) -> Iterator[ThreadingHTTPServer]:
    """A server of one page that only this machine can reach; raises OutputError if it can't be.

    The page asks for functions by their start.

    Requests that name another host are refused: a web page that gets its own name resolved to the
    loopback interface could otherwise read the report.
    """
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    from lbr2pgo.support.errors import OutputError

    def content_of(path: str) -> tuple[str, str] | None:
        if path == "/":
            return page, "html"
        asked = _FUNCTION.fullmatch(path)
        code = function(int(asked[1], 16)) if asked else None
        return None if code is None else (code, "plain")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host = (self.headers.get("Host") or "").rpartition(":")[0]
            found = content_of(self.path) if host in (_LOOPBACK, "localhost") else None
            if found is None:
                self.send_error(404)
                return
            content, kind = found[0].encode("utf-8"), found[1]
            self.send_response(200)
            self.send_header("Content-Type", f"text/{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nobody needs to know."""

    try:
        server = ThreadingHTTPServer((_LOOPBACK, port), Handler)
    except (OSError, OverflowError) as error:
        raise OutputError(
            f"port {port} can't be served on: {error}", cure="Name another one, or 0 for any."
        ) from error
    with server:
        yield server
