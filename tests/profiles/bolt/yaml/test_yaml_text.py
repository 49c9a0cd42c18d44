from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from builders.fixtures import Tool
from builders.outputs import outputs
from builders.recordings import PIE, RECORDING

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.dumping import profile
from lbr2pgo.profiles.bolt.fdata import fdata_text
from lbr2pgo.profiles.bolt.yaml.written import YAML
from lbr2pgo.profiles.bolt.yaml.yaml_text import lines, read
from lbr2pgo.support.errors import InputError

SHOWN = """\
---
header:
  profile-version: 1
  binary-name:     app
functions:
  - name:            main
    fid:             6
    blocks:
      - bid:             0
        succ:            [ { bid: 2, cnt: 3 } ]
  - name:            'f''s/a.c/1'
    fid:             7
  - name:            "q\\"\\\\/1"
    fid:             8
...
"""


@pytest.fixture
def shown(tmp_path: Path) -> Path:
    path = tmp_path / "app.yaml"
    path.write_text(SHOWN)
    return path


def test_what_llvm_bolt_writes_is_shown_as_it_is(tmp_path: Path, tool: Tool) -> None:
    tool("llvm-bolt-22")
    yaml, plain = tmp_path / "yaml", tmp_path / "fdata"
    convert(ConvertOptions((RECORDING,), PIE, outputs=outputs(bolt_yaml=yaml, fdata=plain)))
    assert "".join(f"{line}\n" for line in profile.lines(yaml)) == yaml.read_text()
    names = set(YAML.functions(read(yaml)))
    assert names <= set(fdata_text.read(plain).names)
    assert {"run/1", "next_token/1"} <= names
    assert next(profile.lines(yaml, "run")) == "  - name:            'run/1'"


def test_merged_by_merge_fdata_it_has_the_same_functions(tmp_path: Path, tool: Tool) -> None:
    tool("llvm-bolt-22")
    yaml, both = tmp_path / "yaml", tmp_path / "both"
    convert(ConvertOptions((RECORDING,), PIE, outputs=outputs(bolt_yaml=yaml)))
    command = [tool("merge-fdata-22"), yaml, yaml, "-o", both]
    subprocess.run(command, check=True, capture_output=True)
    assert YAML.functions(read(both)) == YAML.functions(read(yaml))


def test_a_function_s_lines_are_found_by_its_name_however_quoted(shown: Path) -> None:
    assert YAML.functions(read(shown)) == ("main", "f's/a.c/1", 'q"\\/1')
    assert "".join(f"{line}\n" for line in lines(read(shown))) == SHOWN
    assert len(list(profile.lines(shown, "main"))) == 5
    assert list(profile.lines(shown, "f's"))[1] == "    fid:             7"
    with pytest.raises(InputError, match="holds nothing of mian"):
        profile.lines(shown, "mian")


def test_a_file_that_is_cut_off_is_refused(shown: Path) -> None:
    shown.write_text("".join(SHOWN.splitlines(keepends=True)[:7]))
    with pytest.raises(InputError, match="cut off") as caught:
        read(shown)
    assert caught.value.where == f"{shown}:7"


def test_a_profile_of_no_function_has_its_header(shown: Path) -> None:
    shown.write_text("---\nheader:\n  profile-version: 1\nfunctions:       []\n...\n")
    assert YAML.functions(read(shown)) == ()
    assert len(list(profile.lines(shown))) == 5
