"""What only the CMake module does: its arguments, and training inside the build."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lbr2pgo.cli.share import SHARE

MODULE = SHARE / "cmake" / "lbr2pgo-config.cmake"
WRONG = {
    "lbr2pgo_profile(PROFILE a.prof)": "TARGET must name a target",
    "lbr2pgo_profile(TARGET nobody PROFILE a.prof)": 'not "nobody"',
    "lbr2pgo_profile(TARGET app)": "give one of PROFILE, RECORDING and TRAIN",
    "lbr2pgo_profile(TARGET app PROFILE a.prof TRAIN)": "give one of PROFILE, RECORDING and TRAIN",
    "lbr2pgo_profile(TARGET app PROFILE)": "PROFILE needs a file",
    "lbr2pgo_profile(TARGET app RECORDING perf.data)": "RECORDING needs BINARY",
    "lbr2pgo_profile(TARGET app PROFILE a.prof BINARY b)": "BINARY goes with RECORDING",
    "lbr2pgo_bolt(PROBES TARGET app PROFILE a.fdata)": "unknown arguments: PROBES",
    "lbr2pgo_bolt(FAST TARGET app PROFILE a.fdata)": "unknown arguments: FAST",
    "lbr2pgo_profile(TARGET helper TRAIN)": "only an executable can TRAIN",
}


def test_the_module_passes_the_linter() -> None:
    """But for names that CMake prescribes, and for comments on commands that say themselves."""
    options = ("--tab-size", "4", "--line-width", "100", "--disabled-codes", "C0103", "C0113")
    lint = Path(sys.executable).with_name("cmake-lint")
    done = subprocess.run([lint, *options, "--", MODULE], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cmake")


@pytest.fixture(scope="module")
def configure(tool, run, folder: Path):
    """Configure a project that calls this, and give what CMake said against it.

    All in one folder: the compiler is looked at once.
    """
    cmake, compiler = tool("cmake"), tool("clang-22")
    (folder / "app.c").write_text("int main(void) { return 0; }\n")

    def call(text: str) -> str:
        (folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.20)\nproject(app LANGUAGES C)\n"
            "find_package(lbr2pgo REQUIRED)\nadd_executable(app app.c)\n"
            f"add_library(helper STATIC app.c)\n{text}\n"
        )
        options = (f"-DCMAKE_C_COMPILER={compiler}", f"-Dlbr2pgo_DIR={MODULE.parent}")
        command = Path(sys.executable).with_name("lbr2pgo")
        done = run(
            cmake, "-S", folder, "-B", folder / "out", *options,
            f"-DLBR2PGO_EXECUTABLE={command}", check=False,
        )  # fmt: skip
        assert bool(done.returncode) == ("CMake Error" in done.stderr)
        return " ".join(done.stderr.split())

    return call


@pytest.mark.parametrize("call", WRONG)
def test_wrong_arguments_are_explained(configure, call: str) -> None:
    said = configure(call)
    assert "CMake Error" in said
    assert WRONG[call] in said


def test_a_library_takes_a_profile_without_being_compared(
    configure, folder: Path, tool, run
) -> None:
    """Its code is only a part of the program that was recorded."""
    (folder / "a.prof").write_text("other:1:1\n 1: 1\n")
    assert configure("lbr2pgo_profile(TARGET helper PROFILE a.prof)") == ""
    done = run(tool("cmake"), "--build", folder / "out", "--verbose")
    assert f"-fprofile-sample-use={folder}/a.prof" in done.stdout
    assert "lbr2pgo check" not in done.stdout


@pytest.mark.parametrize(
    "name", ["plain", "[x86]", "a[b", "a]b", "star*", "what?", "two words", "it's", 'say "so"']
)
def test_a_profile_is_found_in_a_directory_of_any_name(configure, folder: Path, name: str) -> None:
    call = f"lbr2pgo_profile(TARGET helper PROFILE [==[{name}/a.prof]==])"
    assert "yet" in configure(call)
    (folder / name).mkdir()
    (folder / name / "a.prof").write_text("other:1:1\n 1: 1\n")
    assert configure(call) == ""


def test_a_name_with_a_star_is_no_pattern(configure, folder: Path) -> None:
    (folder / "other-1.prof").write_text("other:1:1\n 1: 1\n")
    assert "yet" in configure("lbr2pgo_profile(TARGET helper PROFILE other-*.prof)")


@pytest.mark.parametrize("probes", ["", " PROBES"])
def test_a_training_run_with_probes_is_recorded_with_call_chains(
    configure, folder: Path, tool, run, probes: str
) -> None:
    assert configure(f"lbr2pgo_profile(TARGET app{probes} TRAIN 1)") == ""
    build = (tool("cmake"), "--build", folder / "out", "--target")
    run(*build, "app-training")
    done = run(*build, "app-profile", "--", "-n")
    (recorded,) = (line for line in done.stdout.splitlines() if " record " in line)
    assert ("--call-graph" in recorded) == bool(probes)
