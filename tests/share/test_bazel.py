"""Bazel's file: its macros as Starlark alone, and its rules in Bazel itself where that is here."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import starlark
from builders.fixtures import Tool
from builders.recordings import PIE, RECORDING, TESTBINS

from lbr2pgo.cli.share import SHARE
from lbr2pgo.pgo.flags import FRAME_POINTERS, KEPT_CALLS, OVERWRITTEN
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software

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
native = struct(glob = lambda names, allow_empty: [name for name in names if name in there],
                config_setting = lambda **kwargs: None)

def select(choices):
    chosen = [name for name in choices if training and name.endswith("_training")]
    return choices[(chosen + ["//conditions:default"])[0]]
"""
# Macros as a BUILD file would call them.
BUILD = """
pgo = lbr2pgo_profile(name = "p", profile = "app.prof", probes = probes,
                      compiler = compiler)
lbr2pgo_bolt(name = "app.bolt", binary = ":app", profile = "app.fdata", compiled_with = pgo)
made = lbr2pgo_profile(name = "m", recordings = ["perf.data"], recorded = "app.old")
json.encode([pgo, made, calls])
"""


@pytest.fixture
def evaluate():
    """What the BUILD file's macros give and call, by the files that are there."""

    def call(*there: str, probes: bool = False, compiler: str = "clang", build: str = BUILD,
             training: bool = False):  # fmt: skip
        wanted = f'there = {json.dumps(there)}\nprobes = {probes}\ncompiler = "{compiler}"\n'
        wanted += f"training = {training}\n"
        text = f"{wanted}{BAZEL}\n{FILE.read_text()}\n{build}"
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
    assert pgo["copts"][-6:-1] == ["-fpseudo-probe-for-profiling", *OVERWRITTEN]
    assert not {"-fpseudo-probe-for-profiling", *OVERWRITTEN} & set(made["copts"])
    pgo, made, _ = evaluate(probes=True)
    assert not set(OVERWRITTEN) & set(pgo["copts"])


def test_gcc_is_given_flags_of_its_own(evaluate) -> None:
    pgo, _, _ = evaluate("app.prof", compiler="gcc")
    assert pgo["copts"] == ["-g1", "-fauto-profile=$(location app.prof)"]


def test_a_training_build_uses_no_profile_and_has_flags_of_its_own(evaluate) -> None:
    pgo, _, _ = evaluate("app.prof", probes=True, training=True)
    kept = [flag for flag in KEPT_CALLS if not flag.startswith("-W")]
    assert pgo["copts"][-9:] == ["-fpseudo-probe-for-profiling", *FRAME_POINTERS, *kept, "-O1"]
    pgo, _, _ = evaluate("app.prof", training=True)
    assert pgo["copts"][-4:] == [*FRAME_POINTERS, "-O1"]
    pgo, _, _ = evaluate("app.prof", compiler="gcc", training=True)
    assert pgo["copts"] == ["-g1"]


def test_a_layout_is_used_where_both_files_are_there(evaluate) -> None:
    wanted = 'lbr2pgo_propeller(name = "l", clusters = "a.cc", order = "a.ld")'
    lacking, _ = evaluate("a.cc", build=f"json.encode([{wanted}, calls])")
    assert lacking["inputs"] == []
    assert "-fbasic-block-address-map" in lacking["copts"]
    given, calls = evaluate("a.cc", "a.ld", build=f"json.encode([{wanted}, calls])")
    assert given["inputs"] == ["a.cc", "a.ld"]
    assert given["copts"][-1] == "-fbasic-block-sections=list=$(location a.cc)"
    assert given["linkopts"][-1] == "-Wl,--symbol-ordering-file=$(location a.ld)"
    assert calls == []
    made = 'lbr2pgo_propeller(name = "l", recordings = ["perf.data"], recorded = "a")'
    found, calls = evaluate("perf.data", "a", build=f"json.encode([{made}, calls])")
    assert found["inputs"] == [call["out"] for call in calls]
    assert [call["form"] for call in calls] == ["--propeller-cc", "--propeller-ld"]


def test_functions_are_ordered_where_there_is_an_order(evaluate) -> None:
    wanted = 'lbr2pgo_startup(name = "l", order = "a.startup")'
    lacking, _ = evaluate(build=f"json.encode([{wanted}, calls])")
    assert lacking == {"copts": ["-ffunction-sections"], "inputs": [], "linkopts": []}
    given, _ = evaluate("a.startup", build=f"json.encode([{wanted}, calls])")
    assert given["inputs"] == ["a.startup"]
    assert given["linkopts"][-1] == "-Wl,--symbol-ordering-file=$(location a.startup)"
    made = 'lbr2pgo_startup(name = "l", recordings = ["perf.data"], recorded = "a")'
    found, (call,) = evaluate("perf.data", "a", build=f"json.encode([{made}, calls])")
    assert found["inputs"] == [call["out"]] == ["l.startup"]
    assert call["form"] == "--startup-order"


def test_files_that_are_there_are_used(evaluate) -> None:
    pgo, made, calls = evaluate("app.prof", "app.fdata", "perf.data", "app.old")
    assert pgo["copts"][-1] == "-fprofile-sample-use=$(location app.prof)"
    assert pgo["inputs"] == ["app.prof"]
    assert made["inputs"] == ["m.prof"]
    bolt, convert = calls
    assert (bolt["profile"], bolt["compile_profile"]) == ("app.fdata", "app.prof")
    assert convert["recordings"] == ["perf.data"]
    assert (convert["recorded"], convert["out"]) == ("app.old", "m.prof")


def test_a_committed_profile_is_carried(evaluate) -> None:
    wanted = (
        'lbr2pgo_profile(name = "p", profile = "app.prof", carry = ["a.c"], min_carried = "0.8")'
    )
    pgo, calls = evaluate("app.prof", build=f"json.encode([{wanted}, calls])")
    assert pgo["copts"][-1] == "-fprofile-sample-use=$(location p.carried)"
    assert pgo["inputs"] == ["p.carried"]
    (carry,) = calls
    assert (carry["profile"], carry["sources"], carry["min_carried"]) == (
        "app.prof",
        ["a.c"],
        "0.8",
    )
    assert evaluate(build=f"json.encode([{wanted}, calls])")[1] == []


def test_a_recording_without_its_binary_makes_no_profile(evaluate) -> None:
    _, made, calls = evaluate("perf.data")
    assert made["profile"] is None
    assert len(calls) == 1


# Debian's Bazel 4 has no additional_compiler_inputs: data names the profile alike. That need not be
# there when what is compiled with it is, so tests ask for the profile first.
WORKSPACE_BUILD = """
load("//:lbr2pgo.bzl", "lbr2pgo_bolt", "lbr2pgo_profile", "lbr2pgo_propeller")
mapped = lbr2pgo_propeller(name = "no_layout", clusters = "none.cc", order = "none.ld")
pgo = lbr2pgo_profile(
    name = "app_profile", recordings = ["perf.data"], recorded = "app.recorded",
)
cc_binary(
    name = "app", srcs = ["app.c"], data = pgo.inputs, copts = pgo.copts,
    linkopts = pgo.linkopts + ["-fuse-ld=lld"],
)
lbr2pgo_bolt(
    name = "app.bolt", binary = ":app", compiled_with = pgo, recordings = ["perf.data"],
    recorded = "app.recorded",
)
layout = lbr2pgo_propeller(
    name = "app_layout", recordings = ["mapped.data"], recorded = "app.mapped",
)
cc_binary(
    name = "app.laid_out", srcs = ["app.c"], data = layout.inputs, copts = layout.copts,
    linkopts = layout.linkopts, linkstatic = True,
)
cc_binary(name = "app.with_map", srcs = ["app.c"], copts = mapped.copts,
          linkopts = mapped.linkopts, linkstatic = True)
plain = lbr2pgo_profile(name = "plain_profile", profile = "none.prof")
cc_binary(name = "plain", srcs = ["app.c"], copts = plain.copts,
          linkopts = plain.linkopts + ["-fuse-ld=lld"])
"""
# Bazel's own files load rules from repositories that it would download; C needs but their names.
STUBS = {
    "rules_cc/cc": ("cc_binary", "cc_library", "cc_toolchain", "cc_toolchain_suite"),
    "rules_java/java": (
        "java_binary", "java_import", "java_library", "java_runtime", "java_toolchain",
        "java_package_configuration",
    ),
}  # fmt: skip


def write_stub(folder: Path, names: tuple[str, ...]) -> None:
    folder.mkdir(parents=True)
    (folder.parent / "WORKSPACE").touch()
    (folder / "BUILD").write_text(
        'package(default_visibility = ["//visibility:public"])\n'
        'toolchain_type(name = "toolchain_type")\n'
    )
    rules = (f"{name} = native.{name}\n" for name in names)
    (folder / "defs.bzl").write_text("".join(rules))


Bazel = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where Bazel unpacks itself, and keeps what it makes."""
    folder = tmp_path_factory.mktemp("bazel")
    yield folder
    subprocess.run(["chmod", "-R", "u+w", folder], check=True)  # its outputs are read-only


@pytest.fixture
def bazel(
    tmp_path: Path, installed: Path, tool: Tool, command_path: Mapping[str, str]
) -> Iterator[Bazel]:
    """Run Bazel in a workspace of one program and a recording of it, with one server."""
    program = tool("bazel")
    tool("clang-22"), tool("llvm-bolt-22")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "WORKSPACE").touch()
    (workspace / "BUILD").write_text(WORKSPACE_BUILD)
    for source, name in (
        (FILE, FILE.name), (TESTBINS / "src" / "interp.c", "app.c"), (RECORDING, "perf.data"),
        (PIE, "app.recorded"),
    ):  # fmt: skip
        shutil.copy(source, workspace / name)
    overrides = []
    for path, names in STUBS.items():
        write_stub(tmp_path / path, names)
        repository = path.split("/")[0]
        overrides.append(f"--override_repository={repository}={tmp_path / repository}")
    environment = {**os.environ, **command_path, "CC": "clang-22"}

    # It ends before it would pay to compile much of it well.
    start = [f"--output_user_root={installed}", "--host_jvm_args=-XX:TieredStopAtLevel=1"]
    options = ["-c", "opt", "--action_env=PATH", "--spawn_strategy=local", *overrides]

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, "--nohome_rc", *start, *words],
            cwd=workspace, env=environment, capture_output=True, text=True,
        )  # fmt: skip

    yield lambda *targets: call("build", *options, *targets)
    # `shutdown` waits a minute where nobody reaps what ended.
    os.kill(int(call("info", "server_pid").stdout), signal.SIGKILL)


@pytest.fixture
def command_path() -> dict[str, str]:
    """Where actions find this lbr2pgo."""
    return {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.slow
def test_bazel_itself_builds_with_a_profile_and_lays_out(bazel: Bazel, tmp_path: Path) -> None:
    done = bazel("//:app_profile.prof", "//:plain")
    assert done.returncode == 0, done.stderr
    assert "warning: there is no none.prof yet: a plain build" in done.stderr
    done = bazel("//:app.bolt")
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "workspace" / "bazel-bin").resolve()  # it leads to the last build
    programs = [made / name for name in ("plain", "app", "app.bolt")]
    assert len({program.read_bytes() for program in programs}) == 3
    outputs = {
        subprocess.run([program, "1"], capture_output=True, check=True).stdout
        for program in programs
    }
    assert len(outputs) == 1
    assert (made / "app_profile.prof").read_text().startswith("run:")
    done = bazel("//:app", "--define=lbr2pgo=training", "--platform_suffix=-training")
    assert done.returncode == 0, done.stderr
    (trained,) = made.parents[1].glob("*-training*/bin/app")
    assert trained.read_bytes() != programs[1].read_bytes()
    assert subprocess.run([trained, "1"], capture_output=True).stdout in outputs


@pytest.mark.slow
def test_bazel_itself_builds_with_propeller_s_layout(
    bazel: Bazel, tmp_path: Path, tool: Tool
) -> None:
    """The program with a map, recorded, and built again with what follows from that recording."""
    tool("ld.lld-22")
    workspace = tmp_path / "workspace"
    done = bazel("//:app.with_map")
    assert done.returncode == 0, done.stderr
    shutil.copy(workspace / "bazel-bin" / "app.with_map", workspace / "app.mapped")
    record_software(
        RecordOptions(
            output=workspace / "mapped.data",
            command=(str(workspace / "app.mapped"), "1"),
            period=1009,
        )
    )
    inputs = bazel("//:app_layout.propeller-cc", "//:app_layout.propeller-ld")
    assert inputs.returncode == 0, inputs.stderr
    done = bazel("//:app.laid_out")
    assert done.returncode == 0, done.stderr
    made = (workspace / "bazel-bin").resolve() / "app.laid_out"
    plain, laid_out = (
        subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        for path in (workspace / "app.mapped", made)
    )
    assert ".cold" in laid_out
    assert ".cold" not in plain
    outputs = {
        subprocess.run([path, "1"], capture_output=True, check=True).stdout
        for path in (workspace / "app.mapped", made)
    }
    assert len(outputs) == 1
