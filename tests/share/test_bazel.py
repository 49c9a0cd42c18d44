"""Bazel itself is not to be had here: its file is parsed, linted, loaded, and its macros called."""

from __future__ import annotations

import json

import pytest
import starlark

from lbr2pgo.cli.share import SHARE

FILE = SHARE / "bazel" / "lbr2pgo.bzl"

# What Bazel has and plain Starlark has not: rules note how they were called.
BAZEL = """
calls = []

def rule(**kwargs):
    def instance(**attributes):
        unknown = [name for name in attributes if name not in kwargs["attrs"] and name != "name"]
        if unknown:
            fail("no such attributes", unknown)
        calls.append(attributes)
    return instance

attr = struct(**{name: lambda **kwargs: None
                 for name in ["string", "string_list", "label", "label_list", "output"]})
DefaultInfo, OutputGroupInfo, depset = struct, struct, list
native = struct(glob = lambda names, allow_empty: [name for name in names if name in there])
"""
# Macros as a BUILD file would call them.
BUILD = """
pgo = lbr2pgo_profile(name = "p", profile = "app.prof", probes = probes)
lbr2pgo_bolt(name = "app.bolt", binary = ":app", profile = "app.fdata", compiled_with = pgo)
made = lbr2pgo_profile(name = "m", recordings = ["perf.data"], recorded = "app.old")
json.encode([pgo, made, calls])
"""


@pytest.fixture
def evaluate():
    """What the BUILD file's macros give and call, by the files that are there."""

    def call(*there: str, probes: bool = False):
        text = (
            f"there = {json.dumps(there)}\nprobes = {probes}\n{BAZEL}\n{FILE.read_text()}\n{BUILD}"
        )
        module = starlark.Module()
        dialect = starlark.Dialect.extended()
        dialect.enable_keyword_only_arguments = True
        extensions = [
            starlark.LibraryExtension.StructType, starlark.LibraryExtension.Json,
            starlark.LibraryExtension.Print,
        ]  # fmt: skip
        tree = starlark.parse(FILE.name, text, dialect=dialect)
        return json.loads(starlark.eval(module, tree, starlark.Globals.extended_by(extensions)))

    return call


def test_the_linter_finds_nothing() -> None:
    assert starlark.parse(FILE.name, FILE.read_text()).lint() == []


def test_without_files_the_build_is_plain(evaluate, capfd) -> None:
    pgo, made, calls = evaluate()
    assert pgo == made
    assert pgo["copts"] == ["-g1", "-fdebug-info-for-profiling"]
    assert (pgo["inputs"], pgo["profile"]) == ([], None)
    (bolt,) = calls
    assert (bolt["name"], bolt["profile"], bolt["compile_profile"]) == ("app.bolt", None, None)
    assert capfd.readouterr().err.count("lbr2pgo: warning: there is no ") == 3


def test_probes_are_compiled_in_where_they_are_asked_for(evaluate) -> None:
    pgo, made, _ = evaluate("app.prof", probes=True)
    assert "-fpseudo-probe-for-profiling" in pgo["copts"]
    assert "-fpseudo-probe-for-profiling" not in made["copts"]


def test_files_that_are_there_are_used(evaluate) -> None:
    pgo, made, calls = evaluate("app.prof", "app.fdata", "perf.data", "app.old")
    assert pgo["copts"][-1] == "-fprofile-sample-use=$(location app.prof)"
    assert pgo["inputs"] == ["app.prof"]
    assert made["inputs"] == ["m.prof"]
    bolt, convert = calls
    assert (bolt["profile"], bolt["compile_profile"]) == ("app.fdata", "app.prof")
    assert convert["recordings"] == ["perf.data"]
    assert (convert["recorded"], convert["out"]) == ("app.old", "m.prof")


def test_a_recording_without_its_binary_makes_no_profile(evaluate) -> None:
    _, made, calls = evaluate("perf.data")
    assert made["profile"] is None
    assert len(calls) == 1
