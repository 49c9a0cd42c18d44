"""Make the pictures in docs/images, or another directory, from what the commands print and write.

The one of the page is taken in chromium, which must be installed.
"""

from __future__ import annotations

import io
import math
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.text import Text

from lbr2pgo.analyses.accuracy_curves import (
    InstructionCurve,
    Point,
    depth_points,
)
from lbr2pgo.analyses.judging import exact_edges_of
from lbr2pgo.cli.waterfall import print_waterfall
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.registry import output
from lbr2pgo.program.program import Program
from lbr2pgo.reports import html
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.reports.readable import readable
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import StackSource

ROOT = Path(__file__).parent.parent
RECORDING = ROOT / "testbins" / "recordings" / "x86-64-shapes.pie.perf.data"
BINARY = ROOT / "testbins" / "x86-64" / "shapes.pie"


class Terminal(io.StringIO):
    """A text stream that is printed to in colour."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return True


def picture_of_convert(scratch: Path) -> str:
    """The loss waterfall of a shipped recording, as SVG."""
    options = ConvertOptions(
        profiles=(RECORDING,),
        binary=BINARY,
        outputs=(
            output("llvm", scratch / "shapes.prof"),
            output("fdata", scratch / "shapes.fdata"),
        ),
    )
    console = Console(record=True, width=84, file=io.StringIO(), markup=False, highlight=False)
    console.print("$ lbr2pgo convert perf.data --binary shapes --llvm out.prof --fdata out.fdata")
    printed = Terminal()
    print_waterfall(convert(options).tallies, printed)
    console.print(Text.from_ansi(printed.getvalue().rstrip()))
    return console.export_svg(title="lbr2pgo convert", unique_id="convert")


def picture_of_report(scratch: Path, picture: Path) -> None:
    """The hottest function in the page of a shipped recording."""
    from playwright.sync_api import sync_playwright

    page = scratch / "report.html"
    moved = ((".", str(ROOT / "testbins")),)
    shapes = ReportOptions((RECORDING,), BINARY, top=200, views=3, source=True, source_dirs=moved)
    html.write(readable(replace(make_report(shapes), title="Branches of shapes")), page)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--disable-gpu"], chromium_sandbox=False
        )
        shown = browser.new_page(viewport={"width": 1280, "height": 900})
        shown.goto(f"{page.as_uri()}#code")
        shown.locator("#about-body canvas").first.wait_for()
        shown.screenshot(path=picture)
        browser.close()


CURVES = (
    ("instructions, as sampled", "#c96", lambda p: p.skid == 0 and not p.corrected),
    ("instructions, inferred", "#36c", lambda p: p.skid == 0 and p.corrected),
    ("inferred, skid of 2", "#9bd", lambda p: p.skid == 2 and p.corrected),
)
DEPTH_CURVES = (
    ("as recorded", "#c96", lambda p: not p.corrected),
    ("with fall-throughs added", "#36c", lambda p: p.corrected),
)
_LEFT, _TOP, _WIDTH, _HEIGHT, _LOWEST = 60, 20, 480, 260, 0.5

Curves = Sequence[tuple[str, str, Callable[[Point], bool]]]
"""Label, colour, and which points are on it."""


def pictures_of_curves() -> tuple[str, str]:
    """Overlap of conditional edges of a shipped run, as SVG.

    One is by the number of samples of instructions, the other by the depth of branch stacks.
    """
    name = "x86-64-interp.pie"
    program = Program.open(ROOT / "testbins" / "x86-64" / "interp.pie")
    exact = exact_edges_of(RECORDING.with_name(f"{name}.exact.npz"), program)
    sampled = list(InstructionCurve.of(exact, program).points())
    source = open_source(RECORDING.with_name(f"{name}.perf.data"))
    assert isinstance(source, StackSource)
    stacks = list(depth_points(source, exact, program))
    return (
        _plot(CURVES, [(p.samples, p) for p in sampled]),
        _plot(DEPTH_CURVES, [(p.depth or 0, p) for p in stacks]),
    )


def _plot(curves: Curves, points: Sequence[tuple[int, Point]]) -> str:
    """Curves through points, by the logarithm of their samples or depth."""
    numbers = sorted({number for number, _ in points})
    width = math.log(numbers[-1] / numbers[0])
    across = {number: math.log(number / numbers[0]) / width for number in numbers}
    lines = [_axes(across)]
    for i, (label, colour, chosen) in enumerate(curves):
        at = [(across[number], p.conditional) for number, p in points if chosen(p)]
        path = " ".join(f"{_x(share):.1f},{_y(overlap):.1f}" for share, overlap in at)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = _TOP + _HEIGHT - 60 + 18 * i
        lines.append(f'<text x="{_LEFT + 300}" y="{y}" fill="{colour}">{label}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 40} '
        f'{_TOP + _HEIGHT + 40}" font-family="sans-serif" font-size="12">\n'
        '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(lines) + "\n</svg>\n"
    )


def _x(share: float) -> float:
    return _LEFT + _WIDTH * share


def _y(overlap: float) -> float:
    return _TOP + _HEIGHT * (1 - (overlap - _LOWEST) / (1 - _LOWEST))


def _axes(across: Mapping[int, float]) -> str:
    below = _TOP + _HEIGHT + 18
    marks = [
        f'<text x="{_x(share):.0f}" y="{below}" text-anchor="middle">{n:,}</text>'
        for n, share in across.items()
    ]
    for share in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        y = _y(share)
        marks.append(f'<text x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{share}</text>')
        marks.append(f'<path d="M{_LEFT} {y:.1f}H{_LEFT + _WIDTH}" stroke="#ddd"/>')
    return "\n".join(marks)


def main(directory: Path) -> None:
    """Write the pictures."""
    os.environ["TERM"] = "xterm-256color"
    with TemporaryDirectory() as scratch:
        (directory / "convert.svg").write_text(picture_of_convert(Path(scratch)))
        for name, picture in zip(("accuracy", "depths"), pictures_of_curves(), strict=True):
            (directory / f"{name}.svg").write_text(picture)
        picture_of_report(Path(scratch), directory / "report.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images")
