"""A report as one page that needs nothing else: no network, no other file.

Libraries and data are written into it. All that comes from profiles and binaries goes through the
template's escaping, with characters that could turn or hide text made visible; and the page's
security policy lets only the scripts run that were written here, and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import BinaryIO

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from lbr2pgo import __version__
from lbr2pgo.reports import page
from lbr2pgo.reports.model import Report
from lbr2pgo.support.output import write_to
from lbr2pgo.support.printable import printable

_SCRIPTS = ("dataTables.min.js", "uPlot.iife.min.js", "dagre.min.js")
_FLAME_SCRIPTS = ("d3.min.js", "d3-flamegraph.umd.min.js")
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
    links = page.Links(report)
    flame = page.flame(report.call_tree) if report.call_tree else None
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            version=__version__,
            assets=_assets(has_flame=flame is not None),
            tables=page.visible(report),
            cell=links.cell,
            is_number=page.is_number,
            depth_of=page.depth_of,
            charts=page.charts(report, links),
            functions=[page.function(report, view, links) for view in report.functions],
            flame=flame,
        )
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
    return environment


def _shown(value: object) -> object:
    """What a template puts in, with controls made visible; markup of our own stays."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _asset(name: str) -> str:
    return (resources.files("lbr2pgo.reports") / "assets" / name).read_text(encoding="utf-8")


def _assets(*, has_flame: bool) -> _Assets:
    libraries = (*_SCRIPTS, *(_FLAME_SCRIPTS if has_flame else ()))
    styles = (*(("d3-flamegraph.css",) if has_flame else ()), *_STYLES)
    # A line feed at each end keeps one script from running into the next tag.
    return _Assets(
        tuple(f"\n{_asset(name)}\n" for name in (*libraries, "page.js")),
        tuple(map(_asset, styles)),
    )


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
