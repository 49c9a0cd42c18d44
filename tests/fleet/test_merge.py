"""Files added up: against converting all at once, llvm-profdata and merge-fdata."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from builders.recordings import (
    PIE,
    RECORDING,
    STATIC,
    STATIC_BUILD_ID,
    STATIC_ENTRY,
    STATIC_RECORDING,
    recorded,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.fleet.merge import Merge, MergeOptions, merge_files
from lbr2pgo.profiles.registry import output
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import BuildSource
from lbr2pgo.support.errors import InputError, OutputError


def counts_of(output_path: Path, *recordings: Path) -> Path:
    """What a conversion of recordings of the static program counts."""
    convert(ConvertOptions(recordings, STATIC, outputs=(output("counts", output_path),)))
    return output_path


def merged(target: Path, *inputs: Path, **options: object) -> Merge:
    return merge_files(MergeOptions(inputs, target, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_a_merge_is_a_conversion_of_all_byte_for_byte(
    hosts: list[Path], converted, tmp_path: Path, suffix: str
) -> None:
    whole = converted("counts", f"whole.{suffix}", *hosts).read_bytes()
    parts = [converted("counts", f"{i}.{suffix}", host) for i, host in enumerate(hosts)]
    out = tmp_path / f"sum.{suffix}"
    for order in permutations(parts):
        merged(out, *order)
        assert out.read_bytes() == whole
    merged(tmp_path / f"two.{suffix}", *parts[:2])
    merged(out, tmp_path / f"two.{suffix}", parts[2])
    assert out.read_bytes() == whole
    # Recordings and counts of either form in any mix.
    merged(out, converted("counts", "0.npz", hosts[0]), hosts[1], parts[2], binary=STATIC)
    if suffix == "npz":
        assert out.read_bytes() == whole


LOOPS = [STATIC_ENTRY, (0x22A8E8, 0x22A780, 1), (0x22A8E8, 0x22A780, 2), (0x5550000, 0x22A8C0, 2)]

stacks = st.lists(st.lists(st.sampled_from(LOOPS), min_size=1, max_size=4), min_size=1, max_size=3)
forms = st.sampled_from(["recording", "npz", "parquet"])


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(stacks, forms), min_size=2, max_size=5), st.data())
def test_in_whatever_order_files_are_merged_it_is_a_conversion_of_all(
    parts: list[tuple[list[list[tuple[int, int, int]]], str]], data: st.DataObject
) -> None:
    """Of recordings and counts in any mix and any tree: merging is associative and commutative."""
    with TemporaryDirectory() as folder:
        recordings, inputs = [], []
        for number, (taken, form) in enumerate(parts):
            path = Path(folder, f"{number}.data")
            path.write_bytes(recorded(taken))
            recordings.append(path)
            inputs.append(
                path if form == "recording" else counts_of(path.with_suffix(f".{form}"), path)
            )
        whole = counts_of(Path(folder, "whole.npz"), *recordings)
        while len(inputs) > 1:
            chosen = data.draw(st.permutations(inputs))[: data.draw(st.integers(2, len(inputs)))]
            suffix = data.draw(st.sampled_from(["npz", "parquet"]))
            sum_of = Path(folder, f"sum{len(inputs)}.{suffix}")
            merged(sum_of, *chosen, binary=STATIC)
            inputs = [each for each in inputs if each not in chosen] + [sum_of]
        merged(Path(folder, "all.npz"), *inputs)
        assert Path(folder, "all.npz").read_bytes() == whole.read_bytes()


def test_builds_stay_apart(hosts: list[Path], converted, tmp_path: Path) -> None:
    counts = [converted("counts", "a.npz", *hosts), converted("counts", "b.parquet", RECORDING)]
    done = merged(tmp_path / "{build_id}.npz", *counts, counts[0])
    shares = {build.counts.build_id: build.files for build in done.builds}
    assert shares[STATIC_BUILD_ID] == 2
    assert sorted(shares.values()) == [1, 2]
    assert [build.written.stem for build in done.builds] == list(shares)
    alone = [next(iter(open_source(path).builds())) for path in done.written]  # type: ignore[union-attr]
    assert [each.build_id for each, _ in alone] == list(shares)
    both = merged(tmp_path / "all.parquet", *done.written)
    source = open_source(both.written[0])
    assert isinstance(source, BuildSource)
    assert [each.build_id for each, _ in source.builds()] == list(shares)


def test_an_npz_of_two_builds_is_refused_with_a_way_out(
    hosts: list[Path], converted, tmp_path: Path
) -> None:
    counts = [converted("counts", "a.npz", *hosts), converted("counts", "b.npz", RECORDING)]
    with pytest.raises(InputError, match="2 builds") as raised:
        merged(tmp_path / "all.npz", *counts)
    assert "{build_id}" in (raised.value.cure or "")
    assert not (tmp_path / "all.npz").exists()


def test_recordings_are_counted_with_the_program_that_they_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Name the program with --binary"):
        merged(tmp_path / "x.npz", STATIC_RECORDING, RECORDING)
    done = merged(tmp_path / "x.npz", RECORDING, RECORDING, binary=PIE)
    assert done.builds[0].files == 2


def test_a_weight_is_as_many_files(hosts: list[Path], converted, tmp_path: Path) -> None:
    one, other = (converted("counts", f"{i}.npz", hosts[i]) for i in range(2))
    merged(tmp_path / "thrice.npz", one, one, one, other)
    merged(tmp_path / "weighed.npz", one, other, weights={one: Fraction(3)})
    assert (tmp_path / "thrice.npz").read_bytes() == (tmp_path / "weighed.npz").read_bytes()
    merged(tmp_path / "half.npz", one, one, weights={one: Fraction(1, 2)})
    assert (tmp_path / "half.npz").read_bytes() == one.read_bytes()


@pytest.mark.parametrize("form", ["text", "extbinary"])
def test_sample_profiles_add_up_as_llvm_profdata_adds_them(
    converted, tmp_path: Path, tool, run, form: str
) -> None:
    one = converted("llvm", "one.prof", RECORDING, form=form)
    other = tmp_path / "other.prof"
    other.write_text("main:77:3\n 1: 40\n 2: 37 _Z3foov:30\nnew:5:5\n 1: 5\n")
    out, theirs = tmp_path / "ours.prof", tmp_path / "theirs.prof"
    merged(out, one, other, weights={other: Fraction(7)})
    run(tool("llvm-profdata-22"), "merge", "--sample", "--text", one,
        f"--weighted-input=7,{other}", "-o", theirs)  # fmt: skip
    assert out.read_bytes() == theirs.read_bytes()
    again = merged(tmp_path / "again.prof", one, one).written[0]
    run(tool("llvm-profdata-22"), "merge", "--sample", f"--{form}", one, one, "-o", theirs)
    assert again.read_bytes() == theirs.read_bytes()


FDATA = (
    "1 main 10 1 f 0 1 5\n1 odd\\ name 20 0 [unknown] 0 0 7\n",
    "1 main 10 1 f 0 2 6\n2 f/x.c/1 8 1 main 0 0 1\n4 main 3fb 4 table 10 9\n",
    "1 main 10 1 f 0 0 1\n4 main 3fb 4 table 10 1\n",
)


def test_fdata_adds_up_as_merge_fdata_adds_it(tmp_path: Path, tool, run) -> None:
    paths = [tmp_path / f"{i}.fdata" for i in range(3)]
    for path, text in zip(paths, FDATA, strict=True):
        path.write_text(text)
    merged(tmp_path / "sum.fdata", *paths)
    theirs = run(tool("merge-fdata-22"), *paths).stdout
    assert sorted((tmp_path / "sum.fdata").read_text().splitlines()) == sorted(theirs.splitlines())
    merged(tmp_path / "weighed.fdata", paths[0], paths[1], weights={paths[1]: Fraction(2)})
    theirs = run(tool("merge-fdata-22"), *paths[:2], paths[1]).stdout
    ours = (tmp_path / "weighed.fdata").read_text().splitlines()
    assert sorted(ours) == sorted(theirs.splitlines())


def test_samples_without_branches_keep_the_events_of_all(tmp_path: Path, tool, run) -> None:
    paths = [tmp_path / "a.fdata", tmp_path / "b.fdata"]
    for path, event in zip(paths, ("instructions", "cycles"), strict=True):
        path.write_text(f"no_lbr {event}\n1 main 10 5\n")
    merged(tmp_path / "sum.fdata", *paths)
    assert (tmp_path / "sum.fdata").read_text() == "no_lbr cycles instructions\n1 main 10 10\n"
    assert run(tool("merge-fdata-22"), *paths).stdout == "no_lbr\n1 main 10 10\n"


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        ("boltedcollection\n" + FDATA[0], FDATA[1], "boltedcollection"),
        ("no_lbr\n1 main 10 5\n", FDATA[1], "no_lbr"),
        ("main:1:1\n 1: 1\n", FDATA[1], "LLVM sample profiles.*fdata"),
        ("main:1:1\n 1: 1\n !CFGChecksum: 7\n", "foo:1:1\n 1: 1\n", "pseudo probes"),
        ("main:1:1\n 1: 1\n", "B 22a8da 22a8c0 7 1\n", "counts or recordings"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, one: str, other: str, says: str
) -> None:
    paths = [tmp_path / "one", tmp_path / "other"]
    for path, text in zip(paths, (one, other), strict=True):
        path.write_text(text)
    with pytest.raises(InputError, match=says):
        merged(tmp_path / "out", *paths)
    assert not (tmp_path / "out").exists()


def test_functions_of_other_code_are_left_out_and_told(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "other"]
    for number, path in enumerate(paths, 1):
        path.write_text(f"main:1:1\n 1: 1\n !CFGChecksum: {number}\n")
    assert merged(tmp_path / "out", *paths).notes == (
        "1 functions are left out: of other code, by their checksums",
    )


def test_options_that_make_no_sense_are_refused(converted, tmp_path: Path) -> None:
    profile, counts = (
        converted("llvm", "x.prof", RECORDING),
        converted("counts", "x.npz", RECORDING),
    )
    with pytest.raises(InputError, match="no whole number"):
        merged(tmp_path / "out", profile, weights={profile: Fraction(1, 2)})
    with pytest.raises(InputError, match="is no input"):
        merged(tmp_path / "out", counts, weights={profile: Fraction(2)})
    with pytest.raises(OutputError, match="over an input"):
        merged(counts, counts, counts)


def test_inputs_without_counts_make_no_output(converted, tmp_path: Path) -> None:
    counts = converted("counts", "x.npz", RECORDING)
    with pytest.raises(InputError, match="no counts"):
        merged(tmp_path / "out.npz", counts, weights={counts: Fraction(1, 10**9)})
    assert not (tmp_path / "out.npz").exists()
