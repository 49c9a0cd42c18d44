from __future__ import annotations

from pathlib import Path

import pytest
from builders.fixtures import ROOT, Tool
from builders.recordings import RECORDING

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.afdo import afdo
from lbr2pgo.profiles.afdo.afdo import GccProfile
from lbr2pgo.profiles.bolt.fdata import fdata_text
from lbr2pgo.profiles.carried.carry import carry, carry_over_builds, carry_over_sources
from lbr2pgo.profiles.carried.source_tree import SourceTree
from lbr2pgo.profiles.llvm import extbinary, text
from lbr2pgo.profiles.registry import output, read_written
from lbr2pgo.program.program import Program
from lbr2pgo.support.errors import InputError

FUNCTION = "int {0}(int x) {{\n{1}  int y = other(x);\n  y += more(y);\n  return y;\n}}\n"
NAMES = ("one", "two", "three", "four")


def tree(*names: str, before: str = "") -> SourceTree:
    source = "".join(FUNCTION.format(name, before) for name in names)
    return SourceTree({"a.c": source.encode()}, "/old" if before else "/new")


OLD, NEW = tree(*NAMES, before="  begin();\n"), tree(*NAMES)
PROFILE = "".join(f"{name}:50:5\n 1: 5 begin:5\n 2: 5 other:5\n 4: 5\n" for name in NAMES)


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "old.prof"
    path.write_text(PROFILE)
    return path


def test_it_is_written_in_its_own_format(profile: Path, tmp_path: Path) -> None:
    done = carry_over_sources(profile, OLD, NEW)
    done.write(tmp_path / "new.prof")
    said = (tmp_path / "new.prof").read_text()
    assert said.startswith("four:33:5\n 1: 5 other:5\n 2: 5\n 3: 5\n")
    assert "-fprofile-sample-use=x.prof" in done.next_step(Path("x.prof"))


def test_gcc_s_too(profile: Path, tmp_path: Path) -> None:
    path = tmp_path / "old.afdo"
    afdo.write(GccProfile(text.read(profile), 2), path)
    done = carry_over_sources(path, OLD, tree("one", "two", "three", "fourth"))
    done.write(tmp_path / "new.afdo")
    found = afdo.read(tmp_path / "new.afdo")
    assert found.version == 2
    assert found.samples.functions["fourth"].body == {(1, 0): 5, (2, 0): 5, (3, 0): 5}


def test_refusals(profile: Path, tmp_path: Path) -> None:
    newer = tmp_path / "newer.prof"
    carry_over_sources(profile, OLD, NEW).write(newer)
    with pytest.raises(InputError, match=r"newer\.prof: is of /new, not of /old\nExchange them"):
        carry_over_sources(newer, OLD, NEW)
    with pytest.raises(InputError, match="/new has no function of this profile"):
        carry_over_sources(profile, tree("five"), OLD)
    with pytest.raises(InputError, match="nothing in /new is what /old had"):
        carry_over_sources(profile, OLD, tree())
    hashed = tmp_path / "hashed.prof"
    extbinary.write(text.read(profile), hashed, extbinary.Options(md5_names=True))
    with pytest.raises(InputError, match="has hashes in place of names"):
        carry_over_sources(hashed, OLD, NEW)
    probed = tmp_path / "probed.prof"
    probed.write_text("one:5:5\n 1: 5\n !CFGChecksum: 12\n")
    with pytest.raises(InputError, match="does not tell of source lines"):
        carry_over_sources(probed, OLD, NEW)
    fdata = tmp_path / "x.fdata"
    fdata.write_text("1 one 0 1 two 0 0 5\n")
    with pytest.raises(InputError, match=r"does not tell of source lines\nName the programs"):
        carry_over_sources(fdata, OLD, NEW)
    with pytest.raises(InputError, match="does not tell of source lines"):
        carry_over_sources(fdata, OLD, NEW)
    with pytest.raises(InputError, match="is no written profile"):
        carry_over_sources(Path(__file__), OLD, NEW)


BUILDS = {name: ROOT / "testbins/x86-64" / name for name in ("interp.pie", "interp.static")}


@pytest.fixture(scope="module")
def fdata(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of `interp.pie`."""
    path = tmp_path_factory.mktemp("carry") / "old.fdata"
    convert(ConvertOptions((RECORDING,), BUILDS["interp.pie"], (output("fdata", path),)))
    return path


def programs(*names: str) -> tuple[Program, Program]:
    old, new = (Program.open(BUILDS.get(name, ROOT / "testbins" / name)) for name in names)
    return old, new


def test_programs_are_builds_and_directories_are_sources(fdata: Path, tmp_path: Path) -> None:
    done = carry(fdata, BUILDS["interp.pie"], BUILDS["interp.static"])
    assert done.account.carried() > 0.99
    done.write(tmp_path / "new.fdata")
    assert fdata_text.read(tmp_path / "new.fdata").branches is not None
    assert "lbr2pgo bolt" in done.next_step(tmp_path / "new.fdata")
    with pytest.raises(InputError, match=r"interp\.pie: is no directory"):
        carry(fdata, BUILDS["interp.pie"], ROOT / "testbins")


def test_builds_that_are_refused(fdata: Path, profile: Path) -> None:
    with pytest.raises(InputError, match=r"is of .*interp.pie, not of .*static\nExchange them"):
        carry_over_builds(fdata, *programs("interp.static", "interp.pie"))
    with pytest.raises(InputError, match="the profile of another program"):
        carry_over_builds(fdata, *programs("x86-64/shapes.static", "x86-64/shapes.pie"))
    with pytest.raises(InputError, match=r"nothing in .*shapes.pie is what .*interp.pie had"):
        carry_over_builds(fdata, *programs("interp.pie", "x86-64/shapes.pie"))
    with pytest.raises(InputError, match=r"aarch64/interp.pie: is no x86-64"):
        carry_over_builds(fdata, *programs("interp.pie", "aarch64/interp.pie"))
    lines = profile.with_name("lines.prof")
    lines.write_text("main:5:5\n 1: 5\n")
    with pytest.raises(InputError, match="does not tell of code"):
        carry_over_builds(lines, *programs("interp.pie", "interp.static"))


def test_bolt_s_yaml_is_made_anew(fdata: Path, tmp_path: Path, tool: Tool) -> None:
    tool("llvm-bolt-22")
    old = tmp_path / "old.yaml"
    convert(ConvertOptions((RECORDING,), BUILDS["interp.pie"], (output("bolt_yaml", old),)))
    done = carry_over_builds(old, *programs("interp.pie", "interp.static"))
    assert done.account.carried() > 0.99
    done.write(tmp_path / "new.yaml")
    new = read_written(tmp_path / "new.yaml")
    assert new is not None
    assert new.staleness(programs("interp.static", "interp.static")[0]) is None
    placed = new.beside(programs("interp.static", "interp.static")[0])
    assert placed.staleness(programs("interp.static", "interp.static")[0]).lost < 0.01
