"""Make the pictures in docs/images, or another directory, from what the commands print and write.

The one of the page is taken in chromium, which must be installed.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.text import Text

from lbr2pgo.cli.waterfall import print_waterfall
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.formats import output
from lbr2pgo.reports import html
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.reports.readable import readable

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
    """The first screen of the page of a shipped recording."""
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
        shown.goto(page.as_uri())
        shown.locator("#t-hot-functions tbody tr").first.wait_for()
        shown.screenshot(path=picture)
        browser.close()


def main(directory: Path) -> None:
    """Write the pictures."""
    os.environ["TERM"] = "xterm-256color"
    with TemporaryDirectory() as scratch:
        (directory / "convert.svg").write_text(picture_of_convert(Path(scratch)))
        picture_of_report(Path(scratch), directory / "report.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images")
