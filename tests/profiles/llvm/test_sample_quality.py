from __future__ import annotations

import re

import pytest
from builders.recordings import NAMES, binary, recording
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.llvm import sample_quality
from lbr2pgo.profiles.llvm import text as llvm_text
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile


@pytest.mark.parametrize("name", NAMES)
def test_density_is_that_of_llvm_profgen(name, tool, run, written, tmp_path):
    said = run(
        tool("llvm-profgen-22"), "--perfdata", recording(name), "--binary", binary(name),
        "--format", "text", "--output", tmp_path / "out", "--show-density",
    ).stdout  # fmt: skip
    wanted = re.search(r"density >= ([0-9.]+) account for 99.00%", said)
    assert wanted is not None
    found = sample_quality.density(llvm_text.read(written(name)[0]))
    assert f"{found:.1f}" == wanted[1]


def test_the_density_of_copies_is_that_of_llvm_profgen(corpus, tool, run, tmp_path):
    recording, binary = (
        corpus(f"llvm-profgen/noinline-cs-noprobe.perf{k}") for k in ("script", "bin")
    )
    said = run(
        tool("llvm-profgen-22"), "--perfscript", recording, "--binary", binary, "--show-density",
        "--format", "text", "--output", tmp_path / "out", "--generate-merged-base-profiles",
        "--profile-summary-hot-count=0",
    )  # fmt: skip
    profile = llvm_text.read(tmp_path / "out")
    assert "!Attributes: 6" in (tmp_path / "out").read_text()
    assert f"density >= {sample_quality.density(profile):.1f}" in said.stdout + said.stderr


def test_copies_are_not_covered_twice():
    alone = [b"f:6:1", b" 1: 3", b"g:9:1", b" 1: 9", b" 2: 0"]
    copy = [b" 2: g:9", b"  1: 9", b"  2: 0", b"  !Attributes: 4"]
    profile = llvm_text.parse([*alone[:2], *copy, *alone[2:]], "with a copy")
    assert sample_quality.hot_functions(profile)[0].name == "g"
    assert sample_quality.coverage(profile) == pytest.approx(2 / 3)
    assert sample_quality.coverage(llvm_text.parse(alone, "without")) == pytest.approx(2 / 3)


profiles = st.dictionaries(
    st.sampled_from("abcdef"),
    st.tuples(
        st.dictionaries(st.integers(0, 6), st.integers(0, 50), min_size=1),
        st.dictionaries(st.integers(0, 3), st.dictionaries(st.integers(0, 3), st.integers(1, 9))),
    ),
    min_size=1,
)


def as_text(content: dict[str, tuple[dict[int, int], dict[int, dict[int, int]]]]) -> bytes:
    lines = []
    for name, (body, inlined) in content.items():
        lines.append(f"{name}:100:1")
        lines += [f" {place}: {count}" for place, count in body.items()]
        for place, inner in inlined.items():
            lines.append(f" {place}: callee:10")
            lines += [f"  {at}: {count}" for at, count in inner.items()]
            lines += ["  !Attributes: 4"] * (place % 2)
    return "".join(f"{line}\n" for line in lines).encode()


def test_overlap_is_that_of_llvm_profdata(tool, run, written, tmp_path):
    """Of real profiles, and of random ones that share some functions, places and copies.

    Of these some are marked as copies of what stands by itself too: it counts them all the same.
    """
    pairs = [(written(a)[0], written(b)[0]) for a in NAMES[1:] for b in NAMES[2:]]
    drawn: list[bytes] = []

    @given(profiles)
    def draw(content):
        drawn.append(as_text(content))

    draw()
    for number, text in enumerate(drawn[:60]):
        (tmp_path / f"{number}").write_bytes(text)
    pairs += [(tmp_path / f"{i}", tmp_path / f"{i + 1}") for i in range(min(len(drawn), 60) - 1)]
    compared = 0
    for base, test in pairs:
        done = run(tool("llvm-profdata-22"), "overlap", "--sample", base, test, check=False)
        shown = dict(re.findall(r"  (.*?): ([-0-9.]+)%", done.stdout))
        if "Whole program profile similarity" not in shown:
            continue  # one without any samples
        found = sample_quality.compare(llvm_text.read(base), llvm_text.read(test))
        for value, title in (
            (found.similarity, "Whole program profile similarity"),
            (found.samples, "Whole program sample overlap"),
            (found.functions, "Function overlap"),
        ):
            assert value * 100 == pytest.approx(float(shown[title]), abs=6e-4), title
        compared += 1
    assert compared > 20


@given(profiles)
def test_a_profile_is_like_itself_however_long_it_was_recorded(content):
    profile = llvm_text.parse(as_text(content).splitlines(), "drawn")
    longer = SampleProfile()
    longer.merge(profile, weight=7)
    if sum(map(sum, map(sample_quality.counts_of, profile.functions.values()))):
        assert sample_quality.compare(profile, longer).similarity == pytest.approx(1)
    assert sample_quality.density(longer) == pytest.approx(7 * sample_quality.density(profile))
    assert sample_quality.coverage(longer) == sample_quality.coverage(profile)


def test_nothing_is_like_an_empty_profile():
    profile = llvm_text.parse([b"f:6:1", b" 1: 3"], "some")
    empty = SampleProfile()
    assert sample_quality.compare(profile, empty).similarity == 0
    assert sample_quality.compare(empty, empty).similarity == 0
    assert sample_quality.density(empty) == sample_quality.coverage(empty) == 0
