from __future__ import annotations

from pathlib import Path

import pytest

from lbr2pgo.profiles.bolt.yaml import yaml_text
from lbr2pgo.profiles.bolt.yaml.yaml_tables import tables, written
from lbr2pgo.support.errors import InputError

TEXT = """\
---
header:
  profile-version: 1
functions:
  - name:            'f''s/a.c/1'
    fid:             6
    hash:            0x4ACB2BDDE21E3268
    exec:            7
    nblocks:         3
    blocks:
      - bid:             0
        insns:           11
        hash:            0x4E00BE2FA79F0000
        exec:            5
        probes:          [ { blk: [ 2 ] } ]
        calls:           [ { off: 0x93, fid: 9, cnt: 1 }, { off: 0xA0,
                                        fid: 10, disc: 2, cnt: 4, mis: 3 } ]
        succ:            [ { bid: 2, cnt: 0 }, { bid: 1, cnt: 9, mis: 1 } ]
      - bid:             2
        insns:           1
        hash:            0x0
        succ:            [  ]
  - name:            g
    fid:             7
    hash:            0xFFFFFFFFFFFFFFFF
    exec:            0
    nblocks:         1
...
"""


def read(tmp_path: Path, text: str) -> yaml_text.YamlProfile:
    path = tmp_path / "app.yaml"
    path.write_text(text)
    return yaml_text.read(path)


def test_numbers_calls_and_successors_are_read_however_wrapped(tmp_path: Path) -> None:
    found = tables(read(tmp_path, TEXT))
    assert list(found) == ["f's/a.c/1", "g"]
    assert found["g"].head.numbers["hash"] == 2**64 - 1
    f = found["f's/a.c/1"]
    assert f.head.numbers == {"fid": 6, "hash": 0x4ACB2BDDE21E3268, "exec": 7, "nblocks": 3}
    assert list(f.blocks) == [0, 2]
    first = f.blocks[0]
    assert first.numbers["exec"] == 5
    assert first.others == {"probes": "[ { blk: [ 2 ] } ]"}
    assert dict(first.counts("calls")) == {
        (("off", 0x93), ("fid", 9)): (1, 0),
        (("off", 0xA0), ("fid", 10), ("disc", 2)): (4, 3),
    }
    assert dict(first.counts("succ")) == {(("bid", 2),): (0, 0), (("bid", 1),): (9, 1)}
    assert not list(f.blocks[2].counts("calls"))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    profile = read(tmp_path, TEXT)
    again = tmp_path / "again.yaml"
    yaml_text.write(written(profile.header, tables(profile)), again)
    assert tables(yaml_text.read(again)) == tables(profile)
    assert yaml_text.read(again).header == profile.header


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("fid:             7", "fid:             seven"),
        ("fid:             7", "fid:             010"),
        ("nblocks:         1", "nblocks:         18446744073709551616"),
        ("- bid:             2", "- bid:             0"),
        ("- bid:             2", "- insns:           2"),
        ("cnt: 9, mis: 1", "cnt: 9, mis"),
        ("[ { bid: 2, cnt: 0 }", "[ { bid: 2, cnt: 0"),
        ("name:            g", "name:            'f''s/a.c/1'"),
        ("    nblocks:         1", "    nblocks         1"),
    ],
)
def test_what_bolt_does_not_write_is_told_with_its_function(
    tmp_path: Path, old: str, new: str
) -> None:
    assert old in TEXT
    with pytest.raises(InputError, match=r"the function (g|f's/a.c/1) has .*not write") as told:
        tables(read(tmp_path, TEXT.replace(old, new)), "app.yaml")
    assert told.value.where == "app.yaml"
    assert "--bolt-yaml" in (told.value.cure or "")
