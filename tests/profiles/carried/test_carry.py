from __future__ import annotations

from pathlib import Path

import pytest

from lbr2pgo.profiles.afdo import afdo
from lbr2pgo.profiles.afdo.afdo import GccProfile
from lbr2pgo.profiles.carried.carry import carry_over_sources
from lbr2pgo.profiles.carried.source_tree import SourceTree
from lbr2pgo.profiles.llvm import extbinary, text
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
    with pytest.raises(InputError, match="does not tell of source lines"):
        carry_over_sources(fdata, OLD, NEW)
    with pytest.raises(InputError, match="is no written profile"):
        carry_over_sources(Path(__file__), OLD, NEW)
