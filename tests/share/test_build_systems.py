"""CMake, Make and Meson build a real program with the files that the package ships."""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lbr2pgo.pgo.flags import OVERWRITTEN
from lbr2pgo.pgo.training import Training, make_profiles, record_all
from lbr2pgo.profiles.afdo import afdo
from lbr2pgo.profiles.afdo.afdo import GccProfile
from lbr2pgo.profiles.afdo.format import AfdoOutput
from lbr2pgo.profiles.linker.startup_order import StartupOrderOutput
from lbr2pgo.profiles.llvm.format import LlvmOutput
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.propeller.format import PropellerOutput
from lbr2pgo.profiles.propeller.order_format import PropellerOrderOutput
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.program import Program

pytestmark = pytest.mark.slow

BUILD_SYSTEMS = ("cmake", "make", "meson")
WARNING = "lbr2pgo: warning: "
OLDER = """#!/bin/sh
case "$*" in *-fdebug-info-for-profiling*|*profile*) echo "error: unknown option" >&2; exit 1; esac
exec {compiler} "$@"
"""


def checksum(path) -> str:
    return subprocess.run([path, "5"], capture_output=True, text=True, check=True).stdout


def is_copy(project) -> bool:
    return filecmp.cmp(project.app, project.bolted, shallow=False)


@pytest.mark.parametrize("build_system", BUILD_SYSTEMS)
def test_from_no_profile_to_a_good_one_to_another_program_s(project, build_system):
    app = project(build_system)
    # None yet: plain, and a line for each step.
    first = app.build()
    assert first.code == 0, first.text
    assert len(first.said(WARNING)) == 2
    assert len(first.said("app.prof")) == 1
    assert is_copy(app)
    plain, result = app.app.read_bytes(), checksum(app.app)
    # There they are: both are used.
    app.put("interp.prof", "app.prof")
    app.put("interp.fdata", "app.fdata")
    second = app.build(again=True)
    assert second.code == 0, second.text
    # The layout is that of another build: it is warned of, and used.
    (warning,) = second.said(WARNING)
    assert "app.fdata: " in warning
    assert "% stale: " in warning
    (line,) = [line for line in second.said("stale: counts that") if "app.prof" in line]
    share = float(line.split("app.prof: ")[1].split("%")[0])
    assert 0 < share < 5  # the compiler has optimised some lines away
    assert app.app.read_bytes() != plain
    assert not is_copy(app)
    assert checksum(app.app) == checksum(app.bolted) == result
    # Nothing new: nothing is built.
    stamp = os.stat(app.bolted).st_mtime_ns
    assert app.build().code == 0
    assert os.stat(app.bolted).st_mtime_ns == stamp
    # What was compiled with a profile depends on it; another program's ends the build.
    app.put("shapes.prof", "app.prof")
    third = app.build()
    assert third.code != 0
    (line,) = third.said("; refused: stale, missing")
    assert "in functions that it lacks" in line
    # And stays refused.
    assert app.build().code != 0


def framed_functions(program: Path) -> int:
    """How many begin with `push rbp; mov rbp, rsp`."""
    return (Image.open(program).section_data(".text") or b"").count(bytes.fromhex("554889e5"))


def commands(done, program) -> str:
    """What the build said, and what Ninja runs for it, which tells what CMake does not."""
    ninja = program.parent.glob("build.ninja")
    return "".join((done.text, *(file.read_text() for file in ninja))).replace("'", "")


@pytest.mark.parametrize("build_system", BUILD_SYSTEMS)
def test_a_training_build_lies_apart_and_its_profile_is_used(project, build_system, tmp_path):
    app = project(build_system, probes=True)
    assert app.build().code == 0
    plain, result = app.app.read_bytes(), checksum(app.app)
    app.put("shapes.prof", "app.prof")  # another program's: a training build asks for none
    app.put("shapes.fdata", "app.fdata")
    built = app.build_for_training()
    assert built.code == 0, built.text
    assert app.app.read_bytes() == plain
    assert checksum(app.trained) == result
    frames = [framed_functions(each) for each in (app.app, app.trained)]
    assert frames[0] < frames[1]
    kept = "-mllvm -enable-tail-merge=0 -mllvm -simplifycfg-sink-common=0 -O1"
    assert kept in commands(built, app.trained)
    (app.folder / "app.fdata").unlink()
    recording = tmp_path / "training.data"
    training = Training((f"{app.trained} 2",), 1009, emulate=True, call_graph=True)
    record_all(training, recording, print)
    make_profiles([recording], app.trained, print, [LlvmOutput(app.folder / "app.prof")])
    assert "!Attributes" in (app.folder / "app.prof").read_text()
    done = app.build(again=True)
    assert done.code == 0, done.text
    assert any(": fits " in line for line in done.said("app.prof"))
    assert app.app.read_bytes() != plain
    assert checksum(app.app) == result


@pytest.mark.parametrize("build_system", BUILD_SYSTEMS)
def test_probes_are_built_recorded_and_used(project, build_system, tmp_path):
    app = project(build_system, probes=True)
    first = app.build()
    assert first.code == 0, first.text
    unprofiled = commands(first, app.app)
    plain, result = app.app.read_bytes(), checksum(app.app)
    recording = tmp_path / "probed.data"
    record_all(Training((f"{app.app} 2",), 1009, emulate=True), recording, print)
    make_profiles([recording], app.app, print, [LlvmOutput(app.folder / "app.prof", probes="on")])
    second = app.build(again=True)
    assert second.code == 0, second.text
    (line,) = [line for line in second.said("lbr2pgo: ") if "app.prof" in line]
    assert ": fits " in line
    assert [" ".join(OVERWRITTEN) in text for text in (unprofiled, commands(second, app.app))] == [
        False, True
    ]  # fmt: skip
    assert app.app.read_bytes() != plain
    assert checksum(app.app) == result


@pytest.mark.parametrize("build_system", BUILD_SYSTEMS)
def test_gcc_is_given_a_profile_of_its_own(project, build_system, tmp_path, tool):
    tool("gcc")
    app = project(build_system)
    first = app.build(compiler="gcc")
    assert first.code == 0, first.text
    plain, result = app.app.read_bytes(), checksum(app.app)
    recording = tmp_path / "gcc.data"
    record_all(Training((f"{app.app} 2",), 1009, emulate=True), recording, print)
    make_profiles([recording], app.app, print, [AfdoOutput(app.folder / "app.prof")])
    second = app.build(again=True, compiler="gcc")
    assert second.code == 0, second.text
    assert [line for line in second.said("lbr2pgo: ") if "app.prof: " in line]
    built = app.app.read_bytes()
    assert built != plain
    assert checksum(app.app) == result
    # Another one, and everything is compiled again; that of another program is refused.
    other = GccProfile(SampleProfile())
    other.samples.function("elsewhere").add_body((1, 0), 100)
    other.samples.function("elsewhere").total = 100
    afdo.write(other, app.folder / "app.prof")
    third = app.build(compiler="gcc")
    assert third.code != 0
    assert third.said("; refused: stale, missing")


@pytest.mark.parametrize("given", ["files", "recorded"])
@pytest.mark.parametrize("build_system", BUILD_SYSTEMS)
def test_propeller_lays_out_what_was_recorded(project, build_system, given, tmp_path):
    app = project(build_system, propeller=given)
    first = app.build()
    assert first.code == 0, first.text
    assert len(first.said("laid out as ever")) + len(first.said("there is no app.")) >= 1
    result, cc, ld = checksum(app.app), *(app.folder / f"app.propeller-{x}" for x in ("cc", "ld"))
    shutil.copy(app.app, app.folder / "app.mapped")
    recording = tmp_path / "mapped.data"
    record_all(Training((f"{app.app} 2",), 1009, emulate=True), recording, print)
    if given == "recorded":
        shutil.copy(recording, app.folder / "app.data")
    else:
        outputs = [PropellerOutput(cc), PropellerOrderOutput(ld)]
        make_profiles([recording], app.app, print, outputs)
    second = app.build(again=True)
    assert second.code == 0, second.text
    assert any("app.propeller-cc: fits " in line for line in second.said("lbr2pgo: "))
    assert any(name.endswith(".cold") for name in Program.open(app.app).symbols.names)
    assert checksum(app.app) == result
    if given == "files":
        cc.write_text("v1\nf elsewhere\nc 0 1\n")
        third = app.build()
        assert third.code != 0
        assert third.said("; refused: stale, missing")


def in_order(program: Path, order: Path) -> bool:
    """Whether the program's own functions lie as a list names them."""
    opened, source = Program.open(program), (order.parent / "app.c").read_text()
    names = [name for name in order.read_text().splitlines()[1:] if f" {name}(" in source]
    places = [opened.address_of(name) or 0 for name in names]
    return len(places) > 3 and sorted(places) == places


@pytest.mark.parametrize("given", ["files", "recorded"])
@pytest.mark.parametrize("build_system", BUILD_SYSTEMS)
def test_functions_are_ordered_as_the_start_wants_them(project, build_system, given, tmp_path):
    app = project(build_system, startup=given)
    first = app.build()
    assert first.code == 0, first.text
    assert len(first.said("ordered as ever")) + len(first.said("there is no app.")) >= 1
    result, order = checksum(app.app), app.folder / "app.startup"
    recording = tmp_path / "start.data"
    record_all(Training((f"{app.app} 2",), None, emulate=True, startup=True), recording, print)
    make_profiles([recording], app.app, print, [StartupOrderOutput(order)])
    assert not in_order(app.app, order)
    if given == "recorded":
        shutil.move(order, order.with_name("kept"))
        shutil.copy(app.app, app.folder / "app.unordered")
        shutil.copy(recording, app.folder / "app.data")
    second = app.build(again=True)
    assert second.code == 0, second.text
    assert any(".startup: fits " in line for line in second.said("lbr2pgo: "))
    assert in_order(app.app, order if given == "files" else order.with_name("kept"))
    assert checksum(app.app) == result
    if given == "files":
        title, *names = order.read_text().splitlines()
        order.write_text("\n".join([title, *reversed(names)]) + "\n")
        third = app.build()
        assert third.code == 0, third.text
        assert in_order(app.app, order)
        order.write_text(f"{title}\nelsewhere\n")
        fourth = app.build()
        assert fourth.code != 0
        assert fourth.said("; refused: stale, missing")


def test_cmake_records_a_start_itself(project) -> None:
    app = project("cmake", startup="trained")
    done = app.build()
    assert done.code == 0, done.text
    order = app.folder / "out" / "app.startup"
    shutil.copy(order, app.folder)
    assert in_order(app.app, app.folder / "app.startup")


@pytest.mark.parametrize("build_system", BUILD_SYSTEMS)
def test_the_layout_of_another_program_is_refused(project, build_system):
    app = project(build_system)
    app.put("shapes.fdata", "app.fdata")
    done = app.build()
    assert done.code != 0
    (line,) = done.said("; refused: stale, missing")
    assert "app.fdata" in line
    assert not app.bolted.exists()


@pytest.mark.parametrize("build_system", BUILD_SYSTEMS)
def test_profiles_are_made_of_a_recording_and_its_binary(project, build_system):
    app = project(build_system, recorded=True)
    app.put("perf.data", "perf.data")
    app.put("app.recorded", "app.recorded")
    done = app.build()
    assert done.code == 0, done.text
    assert all("% stale: " in line for line in done.said(WARNING))
    assert done.said("stale: counts that")
    assert not is_copy(app)
    assert checksum(app.app) == checksum(app.bolted)


@pytest.mark.parametrize("build_system", BUILD_SYSTEMS)
def test_a_recording_of_another_program_is_refused(project, build_system):
    app = project(build_system, recorded=True)
    app.put("shapes.data", "perf.data")
    app.put("app.recorded", "app.recorded")
    done = app.build()
    assert done.code != 0
    log = app.folder / "out" / "meson-logs" / "meson-log.txt"  # Meson only prints its path
    said = done.text + (log.read_text() if log.exists() else "")
    assert "no process in this recording mapped" in said


@pytest.mark.parametrize("build_system", BUILD_SYSTEMS)
def test_a_compiler_that_is_too_old_is_said(project, build_system, tool, tmp_path):
    older = tmp_path / "clang"
    older.write_text(OLDER.format(compiler=tool("clang-22")))
    older.chmod(0o755)
    app = project(build_system)
    app.put("interp.prof", "app.prof")
    done = app.build(compiler=str(older))
    assert done.code == 0, done.text
    assert "-fdebug-info-for-profiling" in done.said(WARNING)[0]
    assert checksum(app.app).startswith("checksum")


GONE = "int gone(int x) {\n    return x + 1;\n}\n"
EDITED = ("static int", "/* moved\n   by\n   three lines */\nstatic int")


@pytest.fixture
def commit(tool, run):
    """`commit(project)`: puts its source as it is into a repository, and makes that's profile."""

    def commit(app, name: str = "app.prof") -> None:
        folder, own = app.folder, (sys.executable, "-m", "lbr2pgo")
        git = (tool("git"), "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example")
        run(*git, "init", "-q")
        run(*git, "add", "app.c")
        run(*git, "commit", "-qm", "one", "--allow-empty")
        plain = folder / "plain"
        how = ("-O2", "-g1", "-fdebug-info-for-profiling", "app.c", "-o", plain)
        run(tool("clang-22"), *how, cwd=folder)
        run(*own, "record", "--reproducible", "-o", folder / "data", "--", plain, "3")
        written = ("--llvm", folder / name, "--provenance")
        run(*own, "convert", folder / "data.exact", "--binary", plain, *written)

    return commit


@pytest.mark.parametrize("build_system", BUILD_SYSTEMS)
def test_a_committed_profile_goes_with_the_source(project, commit, build_system):
    app = project(build_system, carry="carry")
    commit(app)
    first = app.build()
    assert first.code == 0, first.text
    assert len(first.said("app.prof: 100.0% of the counts carried since ")) == 1
    source = app.folder / "app.c"
    source.write_text(source.read_text().replace(*EDITED, 1))
    second = app.build(again=True)
    assert second.code == 0, second.text
    (line,) = second.said("of the counts carried since ")
    assert float(line.split("app.prof: ")[1].split("%")[0]) > 99
    (fit,) = second.said("stale: counts that") or second.said("fits ")
    assert "carried" in fit
    stamp = os.stat(app.app).st_mtime_ns
    assert app.build().code == 0
    assert os.stat(app.app).st_mtime_ns == stamp


@pytest.mark.parametrize("build_system", BUILD_SYSTEMS)
def test_it_is_trained_anew_where_too_little_is_left(project, commit, build_system):
    app = project(build_system, carry="retrain")
    with (app.folder / "app.c").open("a") as source_file:
        source_file.write(GONE)
    commit(app)
    profile, source = app.folder / "app.prof", app.folder / "app.c"
    shutil.copy(profile, app.folder / "trained.prof")
    profile.write_text(profile.read_text() + "gone:900000000:9\n 1: 900000000\n")
    first = app.build()
    assert first.code == 0, first.text
    assert first.said("of the counts carried since ")
    assert not first.said("--min-carried")
    source.write_text(source.read_text().replace(GONE, ""))
    second = app.build(again=True)
    assert second.code == 0, second.text
    assert second.said(", and --min-carried is 80.0%")
    (fit,) = second.said("stale: counts that") or second.said("fits ")
    assert float(fit.partition("% stale")[0].rpartition(" ")[2] if "stale" in fit else 0) < 5
