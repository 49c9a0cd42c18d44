"""llvm-bolt found, and what it makes of our fdata."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from builders.binary_walks import walked
from builders.fixtures import Compiled
from builders.outputs import outputs
from builders.recordings import PIE, RECORDING

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model.incomplete import IncompleteError
from lbr2pgo.profiles.bolt.tool import find_bolt, needed_bolt, yaml_of_fdata
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.errors import OutputError

SOURCE = """
int hot(int n) { int s = 0; for (int i = 0; i < n; i++) s += i % 3 ? i : -i; return s; }
int main(int argc, char **argv) { return hot(argc * 1000) & 1; }
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put an empty program into the only folder of PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("LLVM_BOLT", raising=False)

    def put(name: str) -> str:
        path = tmp_path / name
        path.touch(mode=0o755)
        return str(path)

    return put


def test_without_any_there_is_none(place) -> None:
    place("llvm-bolt-heatmap")
    assert find_bolt() is None


def test_the_newest_of_several_versions_is_taken(place) -> None:
    newest = place("llvm-bolt-22")
    place("llvm-bolt-9")
    assert find_bolt() == newest


def test_the_plain_name_comes_first_and_the_environment_before_it(place, monkeypatch) -> None:
    numbered = place("llvm-bolt-22")
    plain = place("llvm-bolt")
    assert find_bolt() == plain
    monkeypatch.setenv("LLVM_BOLT", "llvm-bolt-22")
    assert find_bolt() == numbered
    monkeypatch.setenv("LLVM_BOLT", "llvm-bolt-9")
    assert find_bolt() is None


def test_yaml_holds_what_fdata_does_and_lays_out_the_same(
    tmp_path: Path, compiled: Compiled
) -> None:
    if find_bolt() is None:
        pytest.skip("llvm-bolt is not installed")
    program = compiled("clang-22", SOURCE, "-O2", "-fuse-ld=lld", "-Wl,--emit-relocs,--build-id")
    recording = walked(tmp_path, program)
    fdata, yaml = tmp_path / "fdata", tmp_path / "yaml"
    convert(ConvertOptions((recording,), program, outputs=outputs(fdata=fdata, bolt_yaml=yaml)))
    assert "hash-func:       xxh3" in yaml.read_text()
    assert "  - name:            main\n" in yaml.read_text()
    laid = []
    for profile in (fdata, yaml):
        out = tmp_path / f"{profile.name}.bolt"
        words = ("-o", out, "-data", profile, "-reorder-blocks=ext-tsp")
        subprocess.run([needed_bolt(), program, *words], check=True, capture_output=True)
        laid.append(Image.open(out).section_data(".text"))
    assert laid[0] == laid[1]


def test_where_there_is_no_llvm_bolt_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLVM_BOLT", "/none/llvm-bolt")
    with pytest.raises(IncompleteError, match="llvm-bolt is not installed"):
        convert(ConvertOptions((RECORDING,), PIE, outputs=outputs(bolt_yaml=tmp_path / "yaml")))
    assert not (tmp_path / "yaml").exists()


def test_what_llvm_bolt_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    if find_bolt() is None:
        pytest.skip("llvm-bolt is not installed")
    with pytest.raises(OutputError, match=r"llvm-bolt failed: .*no valid profile data"):
        yaml_of_fdata(
            needed_bolt(), str(PIE), lambda path: path.write_text("this is no fdata\n") and None
        )
