from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jsonschema
import pytest
from builders.fixtures import ROOT, Tool

GONE = "int gone(int x) { return 1; }\n"
NEW = "int f(int x) {\n  if (!x)\n    return 0;\n  int y = g(x);\n  y += h(y);\n  return y;\n}\n"
OLD = NEW.replace("  if (!x)\n    return 0;\n", "") + GONE
PROFILE = "f:90:9\n 1: 9 g:9\n 2: 9 h:9\n 3: 9\ngone:3:3\n 0: 3\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("old", OLD), ("new", NEW)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.c").write_text(text)
    (tmp_path / "old.prof").write_text(PROFILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_counts_are_carried_and_what_was_lost_is_named(command, folder: Path) -> None:
    answer = command("carry", "old.prof", "--from", "old", "--to", "new", "-o", "new.prof")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.splitlines() == [
        "90.0% of the counts carried",
        "   90.0% at places that did not change",
        "   10.0% lost",
        "lost, most first: gone 3",
        "not there any more: gone",
        "wrote new.prof (33 bytes): clang -O2 -g -fprofile-sample-use=new.prof",
    ]
    assert (folder / "new.prof").read_text() == "f:90:9\n 3: 9 g:9\n 4: 9 h:9\n 5: 9\n"


def test_the_account_follows_its_schema(command, folder: Path) -> None:
    words = ("old.prof", "--from", "old", "--to", "new", "-o", "new.prof", "--json", "new.json")
    assert command("carry", *words).code == 0
    schema = json.loads((ROOT / "docs/schemas/carried.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(account := json.loads((folder / "new.json").read_text()), schema)
    assert account["functions"]["gone"]["lost"] == 3
    del account["counts"]["same"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(account, schema)


def test_too_little_is_refused(command, folder: Path) -> None:
    words = ("old.prof", "--from", "old", "--to", "new", "-o", "new.prof", "--min-carried", "0.95")
    answer = command("carry", *words)
    assert answer.code == 1
    assert answer.err.startswith("90.0% of the counts carried, and --min-carried is 95.0%\n")
    assert not (folder / "new.prof").exists()


def test_trees_of_a_repository(command, folder: Path, tool: Tool) -> None:
    git = (tool("git"), "-c", "user.name=a", "-c", "user.email=a@example")
    subprocess.run([*git, "init", "-q"], check=True)
    for name, text in (("old", OLD), ("new", NEW)):
        Path("a.c").write_text(text)
        subprocess.run([*git, "add", "a.c"], check=True)
        subprocess.run([*git, "commit", "-qm", name], check=True)
    Path("old/a.c").unlink()
    Path("new/a.c").unlink()
    said = set()
    for span in ("HEAD~1..HEAD", "HEAD~1..", "HEAD~1"):
        assert command("carry", "old.prof", "--git", span, "-o", "new.prof").code == 0
        said.add(Path("new.prof").read_text())
    assert said == {"f:90:9\n 3: 9 g:9\n 4: 9 h:9\n 5: 9\n"}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--from old", "it takes two source trees"),
        ("", "it takes two source trees"),
        ("--from old --to new --git HEAD", "it takes two source trees"),
        ("--from old --to absent", "absent: is no directory"),
        ("--from old --to new -o old.prof", "would be written over an input"),
        ("--from old --to new --json absent/new.json", "absent/new.json: can't be written"),
    ],
)
def test_mistakes_are_one_sentence(command, folder: Path, words: str, why: str) -> None:
    answer = command("carry", "old.prof", "-o", "new.prof", *words.split())
    assert answer.code == 2
    assert why in answer.err
    assert len(answer.err.splitlines()) <= 2
    assert not (folder / "new.prof").exists()
    assert (folder / "old.prof").read_text() == PROFILE


def test_a_committed_profile_says_one_line(command, folder: Path) -> None:
    answer = command("carry", "old.prof", "--committed", "-o", "new.prof")
    assert (answer.code, answer.out) == (0, "")
    said = "old.prof is used as it is: it has no provenance (convert --provenance)"
    assert answer.err.splitlines() == [said]
    assert (folder / "new.prof").read_text() == PROFILE
    answer = command("carry", "old.prof", "--committed", "--git", "HEAD", "-o", "new.prof")
    assert answer.code == 2
    assert "a committed profile's provenance tells its trees" in answer.err
