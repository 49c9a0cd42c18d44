"""What MkDocs does not find in docs/: the README, the changelog and the command line's reference.

MkDocs calls the functions named `on_…` (mkdocs.yml, `hooks`). Pages link to each other as the
repository's files do, so that the links work in both places; what the site does not hold is text
there, without a link.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""Files at the root, and the pages that they become."""

_LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?!https?:|#)(?P<path>[^)#]+)(?P<anchor>#[^)]*)?\)"
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are no files of docs/."""
    for name, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    files.append(File.generated(config, "cli.md", content="\n".join(command_line())))
    files.append(File.generated(config, "sample-report.html", content=sample_report()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where their targets are on the site."""
    sources = {uri: ROOT / name for name, uri in OUTSIDE.items()}
    source = sources.get(page.file.src_uri, ROOT / "docs" / page.file.src_uri)

    def replaced(link: re.Match[str]) -> str:
        target = os.path.relpath(source.parent / link["path"], ROOT)
        uri = OUTSIDE.get(target, target.removeprefix("docs/"))
        if files.get_file_from_path(uri) is None:
            # A target that there is not at all stays a link, which MkDocs complains of.
            return link["text"] if (ROOT / target).exists() else link[0]
        path = os.path.relpath(uri, Path(page.file.src_uri).parent)
        return f"{link['image']}[{link['text']}]({path}{link['anchor'] or ''})"

    return _LINK.sub(replaced, markdown)


def sample_report() -> str:
    """The page that `lbr2pgo report --html` makes of a shipped recording."""
    from lbr2pgo import report
    from lbr2pgo.reports import html
    from lbr2pgo.reports.readable import readable

    recording = ROOT / "testbins" / "recordings" / "x86-64-shapes.pie.perf.data"
    return html.render(readable(report(recording, ROOT / "testbins" / "x86-64" / "shapes.pie")))


def command_line() -> Iterator[str]:
    """Lines of the page that holds each command's help, as Markdown."""
    from lbr2pgo.cli import _parser

    yield "# Command line\n"
    for parser in _with_subcommands(_parser()):
        parser.formatter_class = partial(parser.formatter_class, width=90)  # type: ignore[assignment]
        yield f"## {parser.prog}\n\n```text\n{parser.format_help().rstrip()}\n```\n"


def _with_subcommands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from _with_subcommands(subparser)
