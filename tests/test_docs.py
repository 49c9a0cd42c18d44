from __future__ import annotations

import doctest
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from runpy import run_path

import pytest
from builders.fixtures import ROOT, Run
from builders.pages import unpacked
from builders.recordings import PIE, RECORDING

import lbr2pgo
from lbr2pgo import cli
from lbr2pgo.cli.commands import COMMANDS

PAGES = sorted((ROOT / "docs").rglob("*.md"))
WITH_COMMANDS = [ROOT / "README.md", *PAGES, *sorted((ROOT / "docs" / "recipes").iterdir())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_in_the_docs_print_what_they_say(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a recording of `app`."""
    if "to_pandas()" in page.read_text():
        for name in ("pandas", "polars", "pyarrow"):
            pytest.importorskip(name)
    exact = Path(str(RECORDING).replace(".perf.data", ".exact.npz"))
    for name, source in (("perf.data", RECORDING), ("exact.npz", exact), ("app", PIE)):
        shutil.copy(source, tmp_path / name)
    (tmp_path / "testbins").symlink_to(ROOT / "testbins")
    monkeypatch.chdir(tmp_path)
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_as_the_registries_have_them(page: Path) -> None:
    refreshed = run_path(str(ROOT / "docs" / "make_tables.py"))["refreshed"]
    assert page.read_text() == refreshed(page.read_text()), "make tables"


def test_changed_rows_are_put_right() -> None:
    refreshed = run_path(str(ROOT / "docs" / "make_tables.py"))["refreshed"]
    for page, tables in (("formats.md", 3), ("hardware.md", 1)):
        text = (ROOT / "docs" / page).read_text()
        damaged = re.sub(r"(\(make tables\) -->\n\| )", r"\1changed ", text)
        assert len(damaged) == len(text) + tables * len("changed ")
        assert refreshed(damaged) == text


@pytest.mark.parametrize("page", [*sorted(ROOT.glob("*.md")), *PAGES], ids=lambda page: page.name)
def test_links_inside_the_project_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


def test_pages_that_show_counting_have_running_examples() -> None:
    assert ">>> " in (ROOT / "docs" / "counting.md").read_text()


def commands(path: Path) -> Iterator[str]:
    """Calls of lbr2pgo in a recipe or in a page's code, with what continues their lines."""
    text = path.read_text()
    if path.suffix == ".md":
        text = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    for line in text.replace("\\\n", " ").splitlines():
        found = re.match(r"\s*(?:- |run: |elif )?(lbr2pgo [a-z][^;|>]*)", line)
        if found and "[-" not in line:  # that is how a synopsis shows options
            yield found[1].split(" # ")[0]


@pytest.mark.parametrize("path", WITH_COMMANDS, ids=lambda path: path.name)
def test_commands_are_ones_that_lbr2pgo_takes(path: Path) -> None:
    for command in commands(path):
        try:
            cli._parser().parse_args(shlex.split(command)[1:])
        except SystemExit:
            pytest.fail(command)


def test_commands_are_found_in_every_kind_of_file() -> None:
    found = {path.name for path in WITH_COMMANDS if any(commands(path))}
    assert {"README.md", "recording.md", "github-actions.yml", "gitlab-ci.yml"} <= found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, run: Callable[..., object]) -> Path:
    """The documentation, built; any warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    run(sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder, cwd=ROOT)
    return folder


def test_a_link_that_leads_nowhere_ends_the_build(tmp_path: Path, run: Run) -> None:
    for path in ROOT.iterdir():
        if path.name not in ("build", "docs"):
            (tmp_path / path.name).symlink_to(path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    api = tmp_path / "docs" / "api.md"  # what it takes from the code is half of the time
    api.write_text(re.sub(r"^:::.*\n", "", api.read_text(), flags=re.MULTILINE))
    with (tmp_path / "docs" / "ci.md").open("a") as page:
        page.write("\nSee [nothing](nothing.md).\n")
    done = run(sys.executable, "-m", "mkdocs", "build", "--strict", cwd=tmp_path, check=False)
    assert done.returncode != 0
    (warning,) = (line for line in done.stderr.splitlines() if line.startswith("WARNING"))
    assert "nothing.md" in warning


def test_the_site_holds_every_page(site: Path) -> None:
    names = {page.relative_to(ROOT / "docs").with_suffix("") for page in PAGES}
    names |= {Path("changelog"), Path("cli")}
    assert [name for name in sorted(names) if not (site / name / "index.html").exists()] == []


def test_the_site_tells_every_command_and_everything_public(site: Path) -> None:
    told = unescape((site / "cli" / "index.html").read_text())
    assert [name for name in COMMANDS if f"usage: lbr2pgo {name} " not in told] == []
    api = (site / "api" / "index.html").read_text()
    assert [name for name in lbr2pgo.__all__ if f'id="lbr2pgo.{name}"' not in api] == []


def test_the_site_leads_from_the_readme_to_its_pages(site: Path) -> None:
    home = (site / "index.html").read_text().split("md-content__inner")[1]
    links = set(re.findall(r'href="([a-z-]+)/"', home))
    readme = (ROOT / "README.md").read_text()
    assert {Path(page).stem for page in re.findall(r"\(docs/([a-z-]+\.md)\)", readme)} <= links
    assert 'src="images/' in home


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loads = re.compile(
        r'<(?:script|img)[^>]* src="https?:|<link[^>]* rel="stylesheet"[^>]*"https?:'
    )
    assert [page for page in site.rglob("*.html") if loads.search(page.read_text())] == []


def test_the_site_is_searched_read_in_the_dark_copied_from_and_shows_a_report(site: Path) -> None:
    page = (site / "builds" / "index.html").read_text()
    assert '"content.code.copy"' in page
    assert 'data-md-color-scheme="slate"' in page
    assert 'data-md-component="search"' in page
    assert "create_llvm_prof" in (site / "search" / "search_index.json").read_text()
    assert "Staircase::area" in unpacked((site / "sample-report.html").read_text())
    assert 'href="../sample-report.html"' in page
