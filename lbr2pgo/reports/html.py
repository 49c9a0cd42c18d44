"""A report as one page that needs nothing else: no network, no other file.

Libraries and data are written into it. Data is packed (zlib, Base64), that of each function by
itself, and unpacked where it is shown. All else that comes from profiles and binaries goes through
the template's escaping, with characters that could turn or hide text made visible; and the page's
security policy lets only the scripts run that were written here, and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from functools import cache
from importlib import resources
from typing import BinaryIO

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from lbr2pgo import __version__
from lbr2pgo.analyses.table import SIMULATED
from lbr2pgo.model.doubts import parted
from lbr2pgo.program.demangle import without_unique_suffix
from lbr2pgo.reports import page
from lbr2pgo.reports.model import Report
from lbr2pgo.reports.page_code import function_data
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.output import write_to
from lbr2pgo.support.printable import printable

LIBRARIES = (
    "tabulator.min.js",
    "dagre.min.js",
    "uPlot.iife.min.js",
    "d3-selection.min.js",
    "d3-flamegraph.min.js",
)
SCRIPTS = (
    "common.js",
    "tables.js",
    "graph.js",
    "charts.js",
    "flame.js",
    "code.js",
    "about.js",
    "page.js",
)
"""Our own, in the order in which they need each other."""
_STYLES = ("tabulator_simple.min.css", "uPlot.min.css", "d3-flamegraph.css", "page.css")
_FRAME = "width: 100%; height: 45rem; border: 1px solid #8888"


@dataclass(frozen=True, slots=True)
class _Assets:
    scripts: tuple[str, ...]
    styles: tuple[str, ...]

    def policy(self, *, asks: bool) -> str:
        """Content-Security-Policy: these scripts by their hashes, and no loads at all.

        But a page that is served `asks` for functions, from where it is itself.
        """
        hashes = " ".join(f"'sha256-{_hash(script)}'" for script in self.scripts)
        rest = "style-src 'unsafe-inline'; img-src data:" + ("; connect-src 'self'" * asks)
        return f"default-src 'none'; script-src {hashes}; {rest}"


def write(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the page of a report, whole or not at all; raises OutputError if it can't be."""
    text = render(report).encode("utf-8")

    def put(stream: BinaryIO) -> None:
        stream.write(text)

    write_to(path, put)


def render(report: Report, *, asks: bool = False) -> str:
    """The page of a report; one that is served may `asks` for functions that are not in it."""
    doubts, notes = parted(report.notes)
    content = page.content(report)
    assets = _assets()
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            answers=page.answers(report),
            doubts=doubts,
            plain_notes=(*notes, *([SIMULATED] if page.is_simulated(report) else [])),
            version=__version__,
            assets=assets,
            policy=assets.policy(asks=asks),
            asks=asks,
            program=os.path.basename(report.binary),
            has_functions=report.ran is not None and len(report.ran.table) > 0,
            is_empty=not (report.ran or page.visible(report)),
            tabs={name: title for name, title in page.TABS.items() if name in _tabs(report)},
            silent=page.silent(report),
            data=packed(content),
            functions=[
                (each.placed_start, packed(function_data(each))) for each in report.functions
            ],
        )
    )


def _tabs(report: Report) -> set[str]:
    """Those that there is something on; who recorded what is always known."""
    return {"where", "quality", *(page.tab_of(table.name) for table in page.visible(report))}


def packed(content: object) -> str:
    """JSON without blanks as the page's scripts unpack it; nothing in it is markup."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode())).decode()


def framed(report: Report) -> str:
    """The page as an element of another one, which its scripts can't reach."""
    return (
        f'<iframe srcdoc="{escape(render(report))}" title="{escape(printable(report.title))}" '
        f'sandbox="allow-scripts" style="{_FRAME}"></iframe>'
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(_asset),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["verbatim"] = Markup  # our own scripts and styles, nothing else
    environment.filters["plain_name"] = without_unique_suffix
    return environment


def _shown(value: object) -> object:
    """What a template puts in, with controls made visible; markup of our own stays."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _asset(name: str) -> str:
    return (resources.files("lbr2pgo.reports") / "assets" / name).read_text(encoding="utf-8")


@cache
def _assets() -> _Assets:
    # A line feed at each end keeps one script from running into the next tag.
    return _Assets(
        tuple(f"\n{_asset(name)}\n" for name in (*LIBRARIES, *SCRIPTS)),
        tuple(map(_asset, _STYLES)),
    )


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
