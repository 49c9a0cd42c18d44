"""A small project for each build system, and profiles of real recordings to put into it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from builders.fixtures import Tool
from builders.outputs import outputs
from builders.recordings import PIE, RECORDING, TESTBINS

from lbr2pgo.cli.share import SHARE
from lbr2pgo.conversion import ConvertOptions, convert

SHAPES = TESTBINS / "x86-64" / "shapes.pie"
SHAPES_RECORDING = TESTBINS / "recordings" / "x86-64-shapes.pie.perf.data"

CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(app LANGUAGES C)
find_package(lbr2pgo REQUIRED)
add_executable(app app.c)
lbr2pgo_profile(TARGET app {profile}{probes}{carry})
{propeller}
lbr2pgo_bolt(TARGET app {fdata})
"""
MAKE = """\
CC = clang-22
{probes}
{carry}
include $(shell lbr2pgo share make)/lbr2pgo.mk
$(eval $(call lbr2pgo-profile,app.prof{profile}))
{propeller}
$(eval $(call lbr2pgo-bolt,app,app.fdata{fdata}))

CFLAGS = -O2 $(LBR2PGO_CFLAGS)
LDFLAGS = $(LBR2PGO_LDFLAGS)

all: app app.bolt
app$(LBR2PGO_SUFFIX): app$(LBR2PGO_SUFFIX).o $(LBR2PGO_ORDER)
\t$(CC) $(LDFLAGS) -o $@ $<
\t$(call lbr2pgo-check,$@)
app$(LBR2PGO_SUFFIX).o: app.c $(LBR2PGO_PROFILE) $(LBR2PGO_LAYOUT)
\t$(CC) $(CFLAGS) -c -o $@ $<
"""
MESON = """\
project('app', 'c', default_options: ['optimization=2'])
lbr2pgo_profile = 'app.prof'
lbr2pgo_fdata = 'app.fdata'
{recordings}
{probes}
{carry}
{propeller}
lbr2pgo_training = get_option('training')
subdir('lbr2pgo')
app = executable('app', 'app.c', c_args: lbr2pgo_args, link_args: lbr2pgo_link_args)
lbr2pgo_target = app
subdir('lbr2pgo/bolt')
"""
PROPELLER = {
    ("cmake", "files"): "lbr2pgo_propeller(TARGET app PROFILE app.propeller-cc)",
    ("cmake", "recorded"): "lbr2pgo_propeller(TARGET app RECORDING app.data BINARY app.mapped)",
    ("make", "files"): "$(eval $(call lbr2pgo-propeller,app.propeller-cc,app.propeller-ld))",
    ("make", "recorded"): "$(eval $(call lbr2pgo-propeller,app.propeller-cc,app.propeller-ld,"
    "app.data,app.mapped))",
    ("meson", "files"): "lbr2pgo_clusters = 'app.propeller-cc'\nlbr2pgo_order = 'app.propeller-ld'",
    ("meson", "recorded"): "lbr2pgo_propeller_recording = ['app.data']\n"
    "lbr2pgo_propeller_binary = 'app.mapped'",
}
"""How a project asks for a layout by clang and lld, of stored files or of a recording."""
CARRY = {
    ("cmake", "carry"): " CARRY",
    ("cmake", "retrain"): " CARRY RETRAIN 3",
    ("make", "carry"): "LBR2PGO_CARRY = 1",
    ("make", "retrain"): "LBR2PGO_CARRY = 1\nLBR2PGO_RETRAIN = cp trained.prof app.prof",
    ("meson", "carry"): "lbr2pgo_carry = true",
    ("meson", "retrain"): "lbr2pgo_carry = true\n"
    "lbr2pgo_retrain = ['cp', '@0@/trained.prof'.format(meson.project_source_root()),"
    " '@0@/app.prof'.format(meson.project_source_root())]",
}
"""How it asks for a committed profile to be carried, and what it does where too little is left."""
STARTUP = {
    ("cmake", "files"): "lbr2pgo_startup(TARGET app PROFILE app.startup)",
    ("cmake", "recorded"): "lbr2pgo_startup(TARGET app RECORDING app.data BINARY app.unordered)",
    ("cmake", "trained"): "lbr2pgo_startup(TARGET app TRAIN 1)",
    ("make", "files"): "$(eval $(call lbr2pgo-startup,app.startup))",
    ("make", "recorded"): "$(eval $(call lbr2pgo-startup,app.startup,app.data,app.unordered))",
    ("meson", "files"): "lbr2pgo_startup = 'app.startup'",
    ("meson", "recorded"): "lbr2pgo_startup_recording = ['app.data']\n"
    "lbr2pgo_startup_binary = 'app.unordered'",
}
"""The same of an order for its start; CMake can record that itself."""


@dataclass(frozen=True)
class Done:
    """What a build said."""

    code: int
    text: str

    def said(self, words: str) -> list[str]:
        """The lines that hold these words."""
        return [line for line in self.text.splitlines() if words in line]


@dataclass(frozen=True)
class Project:
    """A project of one program, `app`, in C."""

    folder: Path
    profiles: Path
    steps: tuple[tuple[str, ...], ...]
    """Commands of a build from scratch."""
    again: tuple[tuple[str, ...], ...]
    """Commands of a build after a file of a new name came."""
    training: tuple[tuple[str, ...], ...]
    """Commands of a build that is to be recorded only, in a place of its own."""
    app: Path
    bolted: Path
    trained: Path

    def put(self, profile: str, name: str) -> None:
        """Put a profile of the folder of profiles into the project, under a new time."""
        path = self.folder / name
        path.write_bytes((self.profiles / profile).read_bytes())

    def build_for_training(self) -> Done:
        """Build `trained`, which is to be recorded."""
        return replace(self, steps=self.training).build()

    def build(self, *, again: bool = False, compiler: str = "clang-22") -> Done:
        """Build; stops at the first command that fails."""
        environment = {**os.environ, "CC": compiler, "LC_ALL": "C"}
        environment["PATH"] = f"{os.path.dirname(sys.executable)}:{environment['PATH']}"
        text, code = "", 0
        for command in self.again if again else self.steps:
            words = [*command, f"CC={compiler}"] if command[0] == "make" else command
            done = subprocess.run(
                words, cwd=self.folder, env=environment,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
            text, code = text + done.stdout, done.returncode
            if code:
                break
        return Done(code, text)


@dataclass(frozen=True)
class Wish:
    """What a project is to be like."""

    folder: Path
    profiles: Path
    tool: Tool
    """The path of a tool; skips the test without it."""
    recorded: bool
    """Profiles are made of perf.data."""
    probes: bool
    propeller: str
    """How it asks for a layout by the compiler or the linker; empty where it does not."""
    carry: str
    """How it asks for a profile to be carried; empty where it does not."""


@pytest.fixture(scope="session")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sample profile and fdata of the project's program, and of another."""
    folder = tmp_path_factory.mktemp("profiles")
    for name, recording, binary in (
        ("interp", RECORDING, PIE),
        ("shapes", SHAPES_RECORDING, SHAPES),
    ):
        both = outputs(llvm=folder / f"{name}.prof", fdata=folder / f"{name}.fdata")
        convert(ConvertOptions((recording,), binary, outputs=both))
    shutil.copy(RECORDING, folder / "perf.data")
    shutil.copy(SHAPES_RECORDING, folder / "shapes.data")
    shutil.copy(PIE, folder / "app.recorded")
    return folder


@pytest.fixture
def project(tmp_path: Path, profiles: Path, tool: Tool) -> Callable[..., Project]:
    """`project("make")`; with `recorded=True` profiles are made of perf.data."""
    for name in ("clang-22", "llvm-bolt-22"):
        tool(name)

    def make(
        build_system: str, *, recorded: bool = False, probes: bool = False, propeller: str = "",
        startup: str = "", carry: str = "",
    ) -> Project:  # fmt: skip
        shutil.copy(TESTBINS / "src" / "interp.c", tmp_path / "app.c")
        propeller = PROPELLER[build_system, propeller] if propeller else ""
        propeller = STARTUP[build_system, startup] if startup else propeller
        carry = CARRY[build_system, carry] if carry else ""
        wish = Wish(tmp_path, profiles, tool, recorded, probes, propeller, carry)
        return PROJECTS[build_system](wish)

    return make


def _cmake(wish: Wish) -> Project:
    wish.tool("ninja")
    recording = "RECORDING perf.data BINARY app.recorded"
    text = CMAKE.format(
        profile=recording if wish.recorded else "PROFILE app.prof",
        fdata=recording if wish.recorded else "PROFILE app.fdata",
        probes=" PROBES" if wish.probes else "",
        propeller=wish.propeller,
        carry=wish.carry,
    )
    (wish.folder / "CMakeLists.txt").write_text(text)
    options = ("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-Dlbr2pgo_DIR={SHARE / 'cmake'}")
    build = (wish.tool("cmake"), "--build", "out")
    configure = (wish.tool("cmake"), "-S", ".", "-B", "out", *options)
    out = wish.folder / "out"
    train = wish.tool("cmake"), "-S", ".", "-B", "training", *options, "-DLBR2PGO_TRAINING=ON"
    training = train, (wish.tool("cmake"), "--build", "training")
    return Project(
        wish.folder, wish.profiles, (configure, build), (build,), training,
        out / "app", out / "app.bolt", wish.folder / "training" / "app",
    )  # fmt: skip


def _make(wish: Wish) -> Project:
    wish.tool("make")
    recording = ",perf.data,app.recorded" if wish.recorded else ""
    wanted = "LBR2PGO_PROBES = 1" if wish.probes else ""
    text = MAKE.format(
        profile=recording,
        fdata=recording,
        probes=wanted,
        propeller=wish.propeller,
        carry=wish.carry,
    )
    (wish.folder / "Makefile").write_text(text)
    build = (("make",),)
    training = (("make", "LBR2PGO_TRAINING=1", "app.training"),)
    return Project(
        wish.folder, wish.profiles, build, build, training,
        wish.folder / "app", wish.folder / "app.bolt", wish.folder / "app.training",
    )  # fmt: skip


def _meson(wish: Wish) -> Project:
    wish.tool("ninja")
    recordings = (
        f"lbr2pgo{what}_{name}" for what in ("", "_bolt")
        for name in ("recording = ['perf.data']", "binary = 'app.recorded'")
    )  # fmt: skip
    text = MESON.format(
        recordings="\n".join(recordings) if wish.recorded else "",
        probes="lbr2pgo_probes = true" if wish.probes else "",
        propeller=wish.propeller,
        carry=wish.carry,
    )
    (wish.folder / "meson.build").write_text(text)
    option = "option('training', type: 'boolean', value: false)\n"
    (wish.folder / "meson_options.txt").write_text(option)
    shutil.copytree(SHARE / "meson" / "lbr2pgo", wish.folder / "lbr2pgo")
    meson = str(Path(sys.executable).with_name("meson"))
    setup, build = (meson, "setup", "out"), ("ninja", "-C", "out")
    reconfigure = (meson, "setup", "--reconfigure", "out")
    out = wish.folder / "out"
    training = (meson, "setup", "training", "-Dtraining=true"), ("ninja", "-C", "training")
    return Project(
        wish.folder, wish.profiles, (setup, build), (reconfigure, build), training,
        out / "app", out / "lbr2pgo" / "bolt" / "app.bolt", wish.folder / "training" / "app",
    )  # fmt: skip


PROJECTS = {"cmake": _cmake, "make": _make, "meson": _meson}


@pytest.fixture(autouse=True)
def _leaves_nothing(nothing_is_left: None) -> None:
    """Every test of a command is looked at."""
