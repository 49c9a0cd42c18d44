"""Clusters of blocks, read back, and judged beside a program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import Compiled
from builders.outputs import held

from lbr2pgo.profiles.propeller.files import Cluster, write_clusters
from lbr2pgo.profiles.propeller.written import Clusters, of_clusters, read
from lbr2pgo.profiles.registry import reader_of
from lbr2pgo.program.block_map import open_block_map
from lbr2pgo.program.program import Program
from lbr2pgo.support.errors import InputError

FOUND = (
    Cluster(("f", "alias"), ("0", "2", "1"), True, "a.c", ("g 0:9,2:8", "h 0:9f"), 7),
    Cluster(("main",), ("0",), False),
)


@pytest.mark.parametrize("version", [0, 1])
def test_what_is_written_is_read(tmp_path: Path, version: int) -> None:
    path = tmp_path / "cc"
    write_clusters(FOUND, path, version, ["of the build 12"])
    written = held(path)
    assert isinstance(written, Clusters)
    found = [(each.names, each.blocks, each.total) for each in written.functions]
    assert found == [(each.names, tuple(map(int, each.blocks)), each.total) for each in FOUND]
    reader = reader_of(path)
    assert reader is not None
    lines = [line for line in path.read_text().splitlines() if line[0] not in "#v"]
    assert list(reader.lines(written)) == lines
    own = reader.of_function(written, "alias")
    assert own is not None
    assert list(own) == lines[: 5 if version else 2]
    assert reader.functions(written) == {"f", "alias", "main"}


@pytest.mark.parametrize("version", [0, 1])
def test_names_of_any_length_are_kept(tmp_path: Path, version: int) -> None:
    name = "_Z" + "x" * (1 << 20)
    write_clusters([Cluster((name,), ("0",), False)], tmp_path / "cc", version)
    (function,) = read(tmp_path / "cc").functions
    assert function.names == (name,)


def test_copies_of_blocks_are_no_blocks_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "cc").write_text("v1\nf f\np 1 3 4\nc 0 3.1 4.1\nc 3 4\n")
    (function,) = read(tmp_path / "cc").functions
    assert function.blocks == (0, 3, 4)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("v1\nf f\nc 0 x\n", 3, "x is no number of a block"),
        ("v1\nf f\nc 0 " + "1" * 5000, 3, "is no number of a block"),
        ("v1\nf f\nz 0\n", 3, "no line of Propeller's clusters"),
        ("!f\n!!0 -1\n", 2, "-1 is no number of a block"),
        ("!f\nc 0\n", 2, "no line of Propeller's clusters"),
    ],
)
def test_broken_ones_are_refused(tmp_path: Path, text: str, line: int, said: str) -> None:
    (tmp_path / "cc").write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        held(tmp_path / "cc")
    assert str(caught.value.where).endswith(f":{line}")


def test_blocks_and_functions_that_a_program_lacks_are_stale(
    tmp_path: Path, compiled: Compiled
) -> None:
    source = "int f(int n) { return n % 3 ? n : 7; } int main(int n, char **v) { return f(n); }"
    flags = ("-O1", "-fbasic-block-address-map", "-fuse-ld=lld")
    program = Program.open(compiled("clang-22", source, *flags))
    (tmp_path / "cc").write_text("v1\nf main\nc 0 99\nf gone\nc 0 1\n")
    found = of_clusters(read(tmp_path / "cc").functions, program)
    assert (found.share, found.functions, found.missing) == (0.75, 0.5, ("gone",))


def test_numbers_of_blocks_mean_nothing_in_a_function_that_has_others_now(
    tmp_path: Path, compiled: Compiled
) -> None:
    source = "int f(int n) { return n % 3 ? n : 7; } int main(int n, char **v) { return f(n); }"
    flags = ("-O1", "-fbasic-block-address-map", "-fuse-ld=lld", "-fno-inline")
    changed = source.replace("return n %", "while (n > 9) n /= f(2); return n %")
    before, after = (Program.open(compiled("clang-22", each, *flags)) for each in (source, changed))
    sizes = np.bincount(open_block_map(before.image).function).tolist()
    assert 1 in sizes  # main
    most = max(sizes)
    (tmp_path / "cc").write_text(f"v1\nf f\n# {most} blocks\nc 0\nf main\n# 1 blocks\nc 0\n")
    found = read(tmp_path / "cc").functions
    assert of_clusters(found, before).share == 0
    assert of_clusters(found, after).share == 0.5
