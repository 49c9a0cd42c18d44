"""CONTRIBUTING.md: each recipe does what it says, followed in a copy of the project."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from builders.fixtures import ROOT, Run
from builders.pages import unpacked

RECORDING, BINARY = "testbins/recordings/x86-64-interp.pie.perf.data", "testbins/x86-64/interp.pie"
_FILE = re.compile(r"^```py\n# (\S+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"[Aa]dd\s+`([^`]+)`\s+to\s+`(\w+)`\s+in\s+`([^`]+)`")

NO_RECIPES = ("A release",)


def recipe(heading: str) -> str:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    return text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package, its docs and its tests, with the loops that are compiled already."""
    for name in ("lbr2pgo", "docs", "tests"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.pyc.*", "images")
        )
    for name in ("testbins", "pyproject.toml", "README.md"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.fixture
def run(copy: Path) -> Run:
    """Python in the copy."""

    def run(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=copy,
            env={"PYTHONPATH": str(copy), "PATH": "/usr/bin:/bin", "COLUMNS": "120"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout[-2000:] + done.stderr[-2000:]
        return done

    return run


def follow(text: str, copy: Path) -> None:
    """Write the files of a recipe, and add its lines where it says."""
    for name, content in _FILE.findall(text):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text(content)
    for line, table, name in _LINE.findall(text):
        add(copy / name, table, line)


def add(path: Path, table: str, line: str) -> None:
    """Add a line behind all others of a table."""
    text = path.read_text()
    whole = re.search(rf"^{table}\b[^\n]* = [({{]\n.*?(?=^[)}}])", text, re.DOTALL | re.MULTILINE)
    assert whole is not None, f"{path.name} has no {table}"
    path.write_text(text[: whole.end()] + f"    {line}\n" + text[whole.end() :])


def imported(path: Path, line: str) -> None:
    path.write_text(path.read_text().replace("\nfrom lbr2pgo", f"\n{line}\nfrom lbr2pgo", 1))


def test_every_recipe_is_followed_by_a_test() -> None:
    headings = re.findall(r"(?m)^## (.*)", (ROOT / "CONTRIBUTING.md").read_text())
    tests = Path(__file__).read_text()
    recipes = [each for each in headings if each not in NO_RECIPES]
    assert len(recipes) == 6
    assert [each for each in recipes if f'"{each}"' not in tests] == []


def test_a_format_that_is_read(copy: Path, run: Run, tmp_path: Path) -> None:
    follow(recipe("A format to read"), copy)
    (tmp_path / "stacks").write_text("my-tool 1\n21c0-2150 215b-2160\n" * 1)
    said = run("-m", "lbr2pgo", "dump", "stacks", str(tmp_path / "stacks")).stdout
    assert "my-tool" in said
    assert "0x21c0" in said
    (tmp_path / "stacks").write_text("my-tool 1\nnothing\n")
    wrong = run("-m", "lbr2pgo", "dump", "stacks", str(tmp_path / "stacks"), code=2).stderr
    assert "stacks:2: holds no branches" in wrong
    run("docs/make_tables.py")
    assert "| my-tool | branches as my-tool prints them |" in (
        (copy / "docs" / "formats.md").read_text()
    )
    run("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/sources/test_sources.py")


WRITING = "A format that is written, and its options"
REGISTRY = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/profiles/test_registry.py")


def converted(run: Run, path: Path) -> list[str]:
    words = ("--hottest", str(path), "--hottest-most", "3")
    run("-m", "lbr2pgo", "convert", RECORDING, "--binary", BINARY, *words)
    first, *names = path.read_text().splitlines()
    assert first == "my-optimizer 1"
    return names


def test_a_format_that_is_only_written(copy: Path, run: Run, tmp_path: Path) -> None:
    follow(recipe(WRITING), copy)
    assert len(converted(run, tmp_path / "out")) == 3
    for words in (
        ("dump", "profile"),
        ("check", "--binary", BINARY),
        ("report", "--binary", BINARY),
    ):
        said = run("-m", "lbr2pgo", *words, str(tmp_path / "out"), code=2).stderr
        assert "is of a format that is only written (hottest functions)" in said
    run("docs/make_tables.py")
    page = (copy / "docs" / "formats.md").read_text()
    assert "| hottest functions | `--hottest OUT` | a name a line | my-optimizer |" in page
    assert "| `hottest` | `path` (`--hottest`), `most` (`--hottest-most`: N) |" in page
    run(*REGISTRY)


def test_a_format_that_is_read_back(copy: Path, run: Run, tmp_path: Path) -> None:
    follow(recipe(WRITING), copy)
    follow(recipe("A format that is written and read back"), copy)
    path = copy / "lbr2pgo/profiles/hottest/format.py"
    reading = "from lbr2pgo.profiles.hottest.hottest_reader import HottestReader"
    imported(path, reading)
    text = path.read_text()
    line = '    only_written=b"my-optimizer 1\\n",\n'
    assert line in text
    path.write_text(text.replace(line, "    readers=lambda: (HottestReader(),),\n"))
    names = converted(run, tmp_path / "out")
    shown = run("-m", "lbr2pgo", "dump", "profile", str(tmp_path / "out")).stdout
    assert shown.splitlines() == names
    run(*REGISTRY)


def test_an_analysis(copy: Path, run: Run) -> None:
    follow(recipe("An analysis, a finding and a kind of column"), copy)
    registry, table = copy / "lbr2pgo/analyses/registry.py", copy / "lbr2pgo/analyses/table.py"
    imported(registry, "from lbr2pgo.analyses import stack_sizes")
    imported(registry, "from lbr2pgo.evidence.depths import DEPTHS")
    text = table.read_text()
    table.write_text(
        text.replace('    TEXT = "text"\n', '    TEXT = "text"\n    BYTES = "bytes"\n')
    )
    report = ("-m", "lbr2pgo", "report", RECORDING, "--binary", BINARY, "--only", "stack-sizes")
    assert "Sizes of stacks" in run(*report).stdout
    (found,) = json.loads(run(*report, "--format", "json").stdout)["tables"]
    assert [column["kind"] for column in found["columns"]] == ["count", "bytes"]
    assert {row["size"] for row in found["rows"]} <= set(range(0, 24 * 33, 24))
    assert "samples,size" in run(*report, "--format", "csv").stdout
    run(*report, "--html", str(copy / "page.html"))
    shown = unpacked((copy / "page.html").read_text()).replace(" ", "")
    assert '"unit":"bytes","digits":0' in shown


def test_a_quirk(copy: Path, run: Run) -> None:
    follow(recipe("A quirk of a recorder"), copy)
    run("docs/make_tables.py")
    assert "| odd sources | my recorder |" in (copy / "docs" / "hardware.md").read_text()
    run("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/model/test_quirks.py", "-k", "odd")


def test_an_architecture(copy: Path, run: Run) -> None:
    follow(recipe("An architecture"), copy)
    registry = copy / "lbr2pgo/program/code/registry.py"
    imported(registry, "from lbr2pgo.program.code.loongarch import LOONGARCH")
    tests = "tests/program/code/test_registry.py"
    said = run("-m", "pytest", "-q", "-p", "no:cacheprovider", tests, code=1).stdout
    failed = re.findall(r"(?m)^FAILED .*", said)
    lacking = re.findall(r"(?m)^E +AssertionError: loongarch64 lacks (.*)", said)
    assert len(lacking) == len(set(lacking)) == len(failed) >= 5
