from __future__ import annotations

import json
from pathlib import Path

import pytest

from lbr2pgo.cli import doctor
from lbr2pgo.cli.parser import Parser

CPUINFO = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 85
model name\t: [red]hostile[/] name
flags\t\t: fpu
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    caps = tmp_path / "sys/bus/event_source/devices/cpu/caps"
    caps.mkdir(parents=True)
    (caps / "branches").write_text("32\n")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(CPUINFO)
    return tmp_path


def run(*arguments: str) -> int:
    parser = Parser()
    doctor.add_parser(parser.add_subparsers())
    args = parser.parse_args(["doctor", *arguments])
    return int(args.run(args))


def test_json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--root", str(root), "--format", "json") == 0
    told = capsys.readouterr().out
    assert run("--root", str(root), "--json") == 0
    assert capsys.readouterr().out == told
    answer = json.loads(told)
    rows = {row["name"]: row for row in answer["rows"]}
    assert rows["branch recorder"] == {
        "name": "branch recorder",
        "status": "yes",
        "value": "Intel LBR",
        "reason": "cpu/caps/branches in sysfs says 32",
    }
    assert answer["can_record"]
    assert set(answer) == {
        "recorder", "branches", "reason", "can_record", "missing", "command", "command_line",
        "rows",
    }  # fmt: skip


def test_table_shows_hostile_names_as_they_are(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--root", str(root)) == 0
    out = capsys.readouterr().out
    assert "[red]hostile[/]" in out
    assert "To record: " in out


def test_root_is_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--help")
    assert "--root" not in capsys.readouterr().out


def test_a_machine_that_can_not_record_is_told_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No performance counters, no QEMU, no compiler."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(CPUINFO)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run("--root", str(tmp_path)) == 1
    out = capsys.readouterr().out
    assert "Nothing can record here: " in out
    assert "install qemu-user (apt-get install qemu-user), a C compiler" in out
    assert "To record: " not in out
    assert run("--root", str(tmp_path), "--format", "json") == 1
    answer = json.loads(capsys.readouterr().out)
    assert not answer["can_record"]
    assert len(answer["missing"]) == 2
