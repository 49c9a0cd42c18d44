"""A report as one page that needs nothing else: no network, no other file.

Libraries and data are written into it. All that comes from profiles and binaries goes through the
template's escaping, with characters that could turn or hide text made visible; and the page's
security policy lets only the scripts run that were written here, and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from functools import cache
from importlib import resources
from typing import BinaryIO

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from lbr2pgo import __version__
from lbr2pgo.model.doubts import parted
from lbr2pgo.reports import page
from lbr2pgo.reports.model import Report
from lbr2pgo.reports.values import without_unique_suffix
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.output import write_to
from lbr2pgo.support.printable import printable

_CHART_SCRIPTS, _GRAPH_SCRIPTS = ("uPlot.iife.min.js",), ("dagre.min.js",)
SCRIPTS = (
    "common.js",
    "graph.js",
    "functions.js",
    "tables.js",
    "charts.js",
    "flame.js",
    "page.js",
)
"""Our own, in the order in which they need each other."""
_FRAME = "width: 100%; height: 45rem; border: 1px solid #8888"
_STYLES = ("uPlot.min.css", "page.css")


@dataclass(frozen=True, slots=True)
class _Assets:
    scripts: tuple[str, ...]
    styles: tuple[str, ...]

    @property
    def policy(self) -> str:
        """Content-Security-Policy: these scripts by their hashes, and no loads at all."""
        hashes = " ".join(f"'sha256-{_hash(script)}'" for script in self.scripts)
        return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:"


def write(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the page of a report, whole or not at all; raises OutputError if it can't be."""
    text = render(report).encode("utf-8")

    def put(stream: BinaryIO) -> None:
        stream.write(text)

    write_to(path, put)


def render(report: Report) -> str:
    """The page of a report."""
    doubts, notes = parted(report.notes)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            doubts=doubts,
            plain_notes=notes,
            version=__version__,
            assets=_assets(has_charts=bool(report.timings), has_graphs=bool(report.functions)),
            content=page.content(report),
            sections=page.sections(report),
            silent=page.silent(report),
            functions=report.functions,
        )
    )


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
    environment.filters["compact"] = _compact
    environment.filters["plain_name"] = without_unique_suffix
    return environment


def _shown(value: object) -> object:
    """What a template puts in, with controls made visible; markup of our own stays."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _asset(name: str) -> str:
    return (resources.files("lbr2pgo.reports") / "assets" / name).read_text(encoding="utf-8")


def _compact(value: object) -> Markup:
    """JSON without blanks, in which nothing can end the element that it stands in."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _assets(*, has_charts: bool, has_graphs: bool) -> _Assets:
    libraries = (
        *(_CHART_SCRIPTS if has_charts else ()),
        *(_GRAPH_SCRIPTS if has_graphs else ()),
    )
    # A line feed at each end keeps one script from running into the next tag.
    return _Assets(
        tuple(f"\n{_asset(name)}\n" for name in (*libraries, *SCRIPTS)),
        tuple(map(_asset, _STYLES)),
    )


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
