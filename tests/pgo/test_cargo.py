from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lbr2pgo.pgo.cargo import ByRustflags, built_program, rustc_flags
from lbr2pgo.pgo.flags import WantedFlags, plain_flags, profile_flags, training_flags
from lbr2pgo.pgo.loop import Loop
from lbr2pgo.pgo.loop_options import LoopOptions
from lbr2pgo.pgo.timing import NOT_TIMED
from lbr2pgo.pgo.training import Training
from lbr2pgo.support.errors import InputError, MissingToolError

SOURCE = Path(__file__).parents[1] / "programs" / "collatz.rs"
STABLE = frozenset({"C profile-sample-use", "Z debug-info-for-profiling", "C force-frame-pointers"})


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Callable[[str], str]) -> Path:
    """A package of one program, in the directory at hand."""
    tool("cargo"), tool("rustc")
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "collatz"\nversion = "0.1.0"\nedition = "2021"\n'
        "[profile.release]\nstrip = true\n"
    )
    shutil.copy(SOURCE, tmp_path / "src" / "main.rs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RUSTFLAGS", raising=False)
    return tmp_path


def test_what_is_stable_is_said_as_such() -> None:
    flags = profile_flags(Path("/w/a.prof"), WantedFlags(bolt=True))
    assert rustc_flags(flags, STABLE) == [
        "-Zdebug-info-for-profiling", "-Cprofile-sample-use=/w/a.prof",
        "-Clink-arg=-Wl,--build-id", "-Clink-arg=-Wl,--emit-relocs",
    ]  # fmt: skip
    recorded = training_flags(WantedFlags(frame_pointers=True))
    assert "-Cforce-frame-pointers=yes" in rustc_flags(recorded, STABLE)
    older = rustc_flags(plain_flags(WantedFlags()), frozenset({"Z debuginfo-for-profiling"}))
    assert older[0] == "-Zdebuginfo-for-profiling"


def test_a_compiler_that_lacks_an_option_is_refused() -> None:
    flags = profile_flags(Path("a.prof"), WantedFlags())
    with pytest.raises(MissingToolError, match="this rustc has no profile-sample-use"):
        rustc_flags(flags, frozenset({"Z debug-info-for-profiling"}))


def test_the_one_program_of_a_package_is_found(package: Path) -> None:
    assert built_program() == Path("target/release/collatz")
    (package / "src" / "bin").mkdir()
    shutil.copy(SOURCE, package / "src" / "bin" / "other.rs")
    with pytest.raises(InputError, match="one program is wanted"):
        built_program()


def test_no_package_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Callable[[str], str]
) -> None:
    tool("cargo")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="cargo knows of no package here"):
        built_program()


@pytest.mark.slow
def test_a_package_goes_through_the_loop(package: Path, tool: Callable[[str], str]) -> None:
    tool("qemu-x86_64")
    binary = built_program()
    options = LoopOptions(
        build="cargo build --release --offline", binary=binary,
        train=Training((str(binary),), 1009, True), profile=None, probes=False, bolt=False,
        measure=None, runs=NOT_TIMED, work=Path("work"), cargo=True,
    )  # fmt: skip
    loop = Loop(options, lambda _: None)
    plain, rebuilt = (each.counted.totals for each in loop.run())
    assert rebuilt.taken < 0.95 * plain.taken
    assert loop.builds[1].keep[0].startswith("Keep in RUSTFLAGS: -Zdebug")


def test_the_users_flags_come_first(package: Path) -> None:
    settings = ByRustflags().settings(
        plain_flags(WantedFlags()), {"RUSTFLAGS": "-Ctarget-cpu=native"}
    )
    assert settings["RUSTFLAGS"].startswith("-Ctarget-cpu=native ")
    assert settings["CARGO_PROFILE_RELEASE_STRIP"] == "none"
