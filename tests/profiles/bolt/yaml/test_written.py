"""BOLT's YAML added up, against merge-fdata."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from builders.fixtures import Tool
from builders.outputs import outputs
from builders.recordings import PIE, RECORDING

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.fleet.merge import MergeOptions, merge_files
from lbr2pgo.profiles.bolt.yaml import yaml_text
from lbr2pgo.profiles.bolt.yaml.yaml_tables import tables
from lbr2pgo.support.errors import InputError


@pytest.fixture(scope="module")
def one(tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What llvm-bolt wrote."""
    tool("llvm-bolt-22")
    path = tmp_path_factory.mktemp("yaml") / "one.yaml"
    convert(ConvertOptions((RECORDING,), PIE, outputs=outputs(bolt_yaml=path)))
    return path


def test_profiles_add_up_as_merge_fdata_adds_them(one: Path, tmp_path: Path, tool, run) -> None:
    other, out, theirs = (tmp_path / name for name in ("other", "out", "theirs"))
    # Other blocks: the second function is there without the first one's calls.
    text = one.read_text().replace("{ off: 0x93, fid: 9, cnt: 1 }, ", "")
    other.write_text(text)
    merge_files(MergeOptions((one, other), out, {other: Fraction(2)}))
    run(tool("merge-fdata-22"), one, other, other, "-o", theirs)
    assert tables(yaml_text.read(out)) == tables(yaml_text.read(theirs))
    done = run(tool("llvm-bolt-22"), PIE, "-data", out, "-o", "/dev/null")
    assert "functions with invalid profile" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("profile-flags:   [ lbr ]", "profile-flags:   [ sample ]", "with profile-flags"),
        ("dfs-order:       false", "dfs-order:       true", "with dfs-order false and true"),
        ("nblocks:         16", "nblocks:         17", "the function main is other code here"),
    ],
)
def test_what_does_not_go_together_is_refused(
    one: Path, tmp_path: Path, old: str, new: str, told: str
) -> None:
    assert old in one.read_text()
    other = tmp_path / "other.yaml"
    other.write_text(one.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=told) as caught:
        merge_files(MergeOptions((one, other), tmp_path / "sum.yaml"))
    assert caught.value.where == str(other)
