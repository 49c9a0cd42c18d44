"""What stands at the project's root for packagers, contributors and those who cite."""

from __future__ import annotations

import hashlib
import re
import tomllib
from importlib.metadata import metadata

import pytest
import yaml
from builders.fixtures import ROOT

import lbr2pgo

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
SECTIONS = re.split(r"^## ", CONTRIBUTING, flags=re.MULTILINE)
SCREEN = 40
"""Lines."""


def test_the_whole_license_is_there() -> None:
    text = " ".join((ROOT / "LICENSE").read_text().split())
    # Of the words of https://www.apache.org/licenses/LICENSE-2.0.txt, however they are broken.
    assert hashlib.sha256(text.encode()).hexdigest().startswith("0ffddef9e48f8a09")


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" in project["dynamic"]
    assert metadata("lbr2pgo")["Version"] == lbr2pgo.__version__


def test_every_python_that_gets_a_wheel_is_named() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    built = {f"3.{minor}" for minor in
             re.findall(r"cp3(\d+)-", settings["tool"]["cibuildwheel"]["build"])}  # fmt: skip
    named = {each.rsplit(" ", 1)[1] for each in settings["project"]["classifiers"]
             if re.search(r"Python :: 3\.", each)}  # fmt: skip
    assert named == built
    assert {"Homepage", "Documentation", "Changelog", "Issues"} <= set(settings["project"]["urls"])


def test_upper_bounds_say_why() -> None:
    for line in (ROOT / "pyproject.toml").read_text().splitlines():
        if re.search(r'^  "[^"]*<', line) and "python_version <" not in line:
            assert "#" in line, line


def test_the_citation_has_what_its_format_demands() -> None:
    """Citation File Format 1.2.0, schema guide: `cff-version`, `message`, `title`, `authors`."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["license"] == settings["license"]
    assert citation["url"] == settings["urls"]["Homepage"]


@pytest.mark.parametrize("section", SECTIONS[1:], ids=lambda section: section.split("\n")[0])
def test_each_guide_fits_a_screen_and_names_files_that_are_there(section: str) -> None:
    prose = re.sub(r"```py\n.*?```\n", "", section, flags=re.DOTALL)  # which a test runs
    assert len(prose.splitlines()) <= SCREEN
    for name in re.findall(r"`((?:lbr2pgo|tests|docs)/[^`*]*)`", section):
        assert (ROOT / name).exists(), name


def test_the_guides_name_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```", CONTRIBUTING, re.DOTALL | re.MULTILINE))
    targets = re.findall(r"^make (\w+)", blocks, re.MULTILINE)
    assert targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_mutants_that_live_are_of_code_that_is_there() -> None:
    listed = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())["mutant"]
    assert listed
    for each in listed:
        code = (ROOT / "lbr2pgo" / each["module"]).read_text().splitlines()
        was = [line[1:] for line in each["change"].strip().splitlines() if line.startswith("-")]
        assert was
        assert {*was} <= {*code}, each["change"]
        assert each["why"]
