"""Make the pictures in docs/images from what the commands print and write.

The one of the page is taken in chromium, which must be installed.
"""

from __future__ import annotations

import io
import shutil
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from lbr2pgo.cli.waterfall import print_waterfall
from lbr2pgo.pipeline import ConvertOptions, convert
from lbr2pgo.reports import html
from lbr2pgo.reports.build import ReportOptions, make_report

ROOT = Path(__file__).parent.parent
RECORDING = ROOT / "testbins" / "recordings" / "x86-64-shapes.pie.perf.data"
BINARY = ROOT / "testbins" / "x86-64" / "shapes.pie"


def picture_of_convert(scratch: Path) -> str:
    """The loss waterfall of a shipped recording, as SVG."""
    options = ConvertOptions(
        profiles=(RECORDING,),
        binary=BINARY,
        llvm=scratch / "shapes.prof",
        fdata=scratch / "shapes.fdata",
    )
    console = Console(record=True, width=84, file=io.StringIO(), markup=False, highlight=False)
    console.print("$ lbr2pgo convert perf.data --binary shapes --llvm out.prof --fdata out.fdata")
    print_waterfall(convert(options).tallies, console)
    return console.export_svg(title="lbr2pgo convert", unique_id="convert")


def picture_of_report(scratch: Path, picture: Path) -> None:
    """The page of a shipped recording, where it begins to be about one function."""
    from playwright.sync_api import sync_playwright

    page = scratch / "report.html"
    shapes = ReportOptions((RECORDING,), BINARY, top=200, views=3)
    html.write(replace(make_report(shapes), title="Branches of shapes"), page)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--disable-gpu"], chromium_sandbox=False
        )
        shown = browser.new_page(viewport={"width": 1280, "height": 900})
        shown.goto(page.as_uri())
        shown.locator("#functions").evaluate("section => section.scrollIntoView()")
        shown.locator(".drawing svg").first.wait_for()
        shown.screenshot(path=picture)
        browser.close()


def main() -> None:
    """Write docs/images."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as scratch:
        picture = picture_of_convert(Path(scratch))
        picture_of_report(Path(scratch), ROOT / "docs" / "images" / "report.png")
    (ROOT / "docs" / "images" / "convert.svg").write_text(picture)


if __name__ == "__main__":
    main()
