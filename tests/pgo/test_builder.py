"""How flags reach a build, and what is said where they do not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.loops import BUILD, MakeLoop, steps

from lbr2pgo.pgo import NO_TRAINING_BUILD
from lbr2pgo.pgo.built_code import same_code
from lbr2pgo.pgo.training import Training
from lbr2pgo.support.errors import InputError

OWN_LEVEL = "clang-22 $CFLAGS interp.c -O2 -fuse-ld=lld $LDFLAGS -o app"


"""What a build adds behind the flags of the environment wins."""


def test_training_flags_reach_a_build_whose_own_flags_win(loop: MakeLoop, said: list[str]) -> None:
    loop(training_flags=("-O1",), build=OWN_LEVEL, last="training-build").run()
    assert any("-O1 loses to the build's own -O2. Builds again" in line for line in said)
    assert not same_code(Path("work/app.before"), Path("work/app.training"))


WINS = "clang-22 {flags} -O2 -fuse-ld=lld interp.c -o app"


def test_it_is_told_what_training_flags_lose_to(loop: MakeLoop, said: list[str]) -> None:
    loop(training_flags=("-O1",), build=WINS, last="training-build").run()
    (note,) = (line for line in said if "Note" in line)
    assert note == f"{NO_TRAINING_BUILD}it is the same with -O1, which loses to the build's own -O2"


@pytest.mark.parametrize(
    ("probes", "flags"),
    [(False, ("-fno-inline", "-O1")), (True, ("-O1",))],
    ids=["lines", "probes"],
)
def test_what_else_changes_the_training_build_is_recorded_all_the_same(
    loop: MakeLoop, said: list[str], probes: bool, flags: tuple[str, ...]
) -> None:
    """With probes, that calls which are alike stay apart."""
    loop(training_flags=flags, build=WINS, probes=probes, last="training-build").run()
    (warning,) = (line for line in said if "Warning" in line)
    assert f"{' '.join(flags)} loses to the build's own -O2: write {{flags}} behind" in warning
    assert Path("work/app.training").exists()


def test_a_profile_that_changes_no_code_is_told(loop: MakeLoop, said: list[str]) -> None:
    stamp = "-DSTAMP=$(date +%s%N) -include stamp.h"
    Path("stamp.h").write_text("const char stamp[] = {STAMP % 251};\n")
    Path("none.prof").write_text("run:0:0\n 11: 0\n")
    ignores = BUILD.replace("$CFLAGS", f"{stamp} ${{CFLAGS%-fprofile-sample-use*}}")
    loop(build=ignores, train=None, profile=Path("none.prof")).run()
    assert any("its code is as before" in line for line in said)


MAKEFILE_WITH_LINES = """
app: interp.c
	clang-22 -O2 -g -Wl,--build-id -fuse-ld=lld interp.c -o app
"""


@pytest.mark.parametrize("training_flags", [("-O1",), ()], ids=["training", "shipped"])
def test_compilers_that_add_flags_serve_every_later_step(
    loop: MakeLoop, said: list[str], training_flags: tuple[str, ...]
) -> None:
    Path("Makefile").write_text(MAKEFILE_WITH_LINES)
    made = loop(build="make -B -s", training_flags=training_flags)
    plain, rebuilt = (each.counted.totals for each in made.run())
    assert rebuilt != plain
    assert sum("Builds again, with compilers" in line for line in said) == 1
    assert "The build sets its flags itself" in made.builds[1].keep[-1]


def test_compilers_that_add_flags_in_vain_are_given_up(loop: MakeLoop, said: list[str]) -> None:
    takes_profiles = "$(echo $CFLAGS | grep -o -- '-fprofile-sample-use[^ ]*')"
    build = f"/usr/bin/clang-22 -O2 -g -Wl,--build-id {takes_profiles} interp.c -o app"
    plain, rebuilt = (
        each.counted.totals for each in loop(build=build, training_flags=("-O1",)).run()
    )
    assert rebuilt != plain
    assert not Path("work/app.compilers").exists()


def test_training_flags_that_change_nothing_are_told(loop: MakeLoop, said: list[str]) -> None:
    loop(training_flags=("-O2",), last="training-build").run()
    (note,) = (line for line in said if "Note" in line)
    assert note == f"{NO_TRAINING_BUILD}it is the same with -O2"
    assert not Path("work/app.training").exists()


def test_a_build_whose_compiler_nothing_reaches_is_refused_before_training(
    loop: MakeLoop, said: list[str], tool: Callable[[str], str]
) -> None:
    with pytest.raises(InputError, match="did not take the flags"):
        loop(build=f"{tool('clang-22')} -O2 interp.c -o app").run()
    assert steps(said) == ["Build what is to be recorded"]


MAKEFILE = """
CC = clang-22
CFLAGS = -O2 -Wall -Werror
app: interp.c
	$(CC) $(CFLAGS) -c interp.c
	$(CC) -s -fuse-ld=lld interp.o -o app
	strip app
"""


def test_a_makefile_that_sets_its_flags_and_strips_is_built_with_ours_all_the_same(
    loop: MakeLoop, said: list[str]
) -> None:
    Path("Makefile").write_text(MAKEFILE)
    made = loop(build="make -B -s")
    plain, rebuilt = (each.counted.totals for each in made.run())
    assert rebuilt.taken < plain.taken
    assert "sets its own flags, or strips" in " ".join(said)
    assert "change that there" in made.builds[1].keep[-1]
    assert steps(said)[-1] == "Measure"


def test_flags_stand_where_the_command_wants_them(loop: MakeLoop, said: list[str]) -> None:
    made = loop(build="clang-22 -O2 {cflags} interp.c -fuse-ld=lld {ldflags} -o app")
    plain, rebuilt = (each.counted.totals for each in made.run())
    assert rebuilt.taken < plain.taken
    assert said[1].startswith("   clang-22 -O2 -g -fdebug-info-for-profiling interp.c")
    assert made.builds[1].keep[0].startswith("Keep in place of {flags}: -g")


def test_a_build_that_does_not_compile_anew_is_refused(loop: MakeLoop) -> None:
    with pytest.raises(InputError, match="did not compile it anew"):
        loop(build=f"test -e app || {BUILD}").run()


CACHED = {
    "variables": "app: interp.c\n\tccache clang-22 $(CFLAGS) -c $<\n",
    "by name": "app: interp.c\n\tccache clang-22 -O2 -c $<\n",
    "by path": "app: interp.c\n\t$$(which ccache) $$(which clang-22) -O2 -c $<\n",
    "masked": "app: interp.c\n\tclang-22 -O2 -c $<\n",
}  # fmt: skip
"""Ways in which ccache comes in front of a compiler; the last one by a link of its name."""
LINKED = "\tclang-22 $(CFLAGS) -fuse-ld=lld $(LDFLAGS) interp.o -o app\n"


@pytest.mark.parametrize("way", CACHED)
def test_behind_ccache_a_second_loop_compiles_nothing(
    loop: MakeLoop, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    ccache, folder = tool("ccache"), Path("links").absolute()
    folder.mkdir()
    if way == "masked":
        (folder / "clang-22").symlink_to(ccache)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("CCACHE_DIR", str(Path("cache").absolute()))
    Path("Makefile").write_text(CACHED[way] + LINKED)
    sampled = {"train": Training(("./app 2",), 1009, True, call_graph=True), "probes": True}
    for _ in range(2):
        subprocess.run([ccache, "-z"], check=True, stdout=subprocess.DEVNULL)
        loop(build="make -B -s", training_flags=("-O1",), last="rebuild", **sampled).run()
        assert Path("work/app.training").exists()
    counts = subprocess.run([ccache, "--print-stats"], check=True, capture_output=True, text=True)
    found = dict(line.split("\t") for line in counts.stdout.splitlines())
    assert found["cache_miss"] == "0"
    assert int(found["direct_cache_hit"]) >= 3
