"""Profiles beside programs that they don't belong to: each format, with each kind of stranger.

One sentence says which it is, with exit code 1 or 2. The programs are built here, of two sources,
and for two architectures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from builders.binary_walks import BinaryWalk, walked

from lbr2pgo.cli import main
from lbr2pgo.pgo.stored import judge, refuse_another_program
from lbr2pgo.support.errors import InputError

SOURCES = Path(__file__).parents[2] / "testbins" / "src"
FLAGS = (
    "-O2", "-g", "-fno-unique-internal-linkage-names", "-fbasic-block-address-map",
    "-fuse-ld=lld", "-Wl,-q",
)  # fmt: skip
PROBES = "-fpseudo-probe-for-profiling"
HERE, THERE = "x86_64", "aarch64"
CROSS = {HERE: "x86_64-linux-gnu-gcc", THERE: "aarch64-linux-gnu-gcc"}
_FUNCTION = re.compile(r"(?m)^(?!struct|enum)(\w.*\) \{)$")
_CHANGE = r"\1" + "\n" * 40 + "    static volatile int on; if (on) on = 0;"
"""Each function has a branch more and all its lines are others."""

FORMATS = {
    "line": ("--llvm",),
    "binary": ("--llvm-format", "extbinary", "--llvm"),
    "probe": ("--llvm",),
    "context": ("--contexts", "full", "--llvm"),
    "fdata": ("--fdata",),
    "yaml": ("--bolt-yaml",),
    "afdo": ("--afdo",),
    "propeller": ("--propeller-cc",),
    "propeller0": ("--propeller-version", "0", "--propeller-cc"),
}
WRITTEN_BY_OTHERS = ("llvm-profgen", "perf2bolt")
EVERY = (*FORMATS, *WRITTEN_BY_OTHERS)
FOR_BOLT = ("fdata", "yaml", "perf2bolt")
BY_OFFSET = ("fdata", "perf2bolt")


@dataclass(frozen=True)
class Bench:
    """Programs, and profiles of the first of them in each format."""

    folder: Path

    def program(self, name: str, profile: str = "line") -> Path:
        """A program as it is built for a format."""
        return self.folder / (f"{name}-probes" if profile == "probe" else name)

    def profile(self, form: str) -> Path:
        """What was written of `own`."""
        return self.folder / f"{form}.profile"


@pytest.fixture(scope="module")
def bench(tmp_path_factory, tool, run):
    """Programs: `own`, another `build`, another `program`, another `architecture`, and both."""
    folder = tmp_path_factory.mktemp("pairings")
    tool("llvm-bolt-22"), tool(CROSS[THERE])
    edited = folder / "edited.c"
    text, changed = _FUNCTION.subn(_CHANGE, (SOURCES / "interp.c").read_text())
    assert changed > 5
    edited.write_text(text)
    own, other = SOURCES / "interp.c", SOURCES / "shapes.cpp"
    for name, source, machine in (
        ("own", own, HERE), ("build", edited, HERE), ("program", other, HERE),
        ("architecture", own, THERE), ("stranger", other, THERE),
    ):  # fmt: skip
        for suffix, more in (("", ()), ("-probes", (PROBES,))):
            clang = tool("clang++-22" if source is other else "clang-22")
            target = f"--target={machine}-linux-gnu"
            run(clang, target, *FLAGS, *more, source, "-o", folder / f"{name}{suffix}")
    found = Bench(folder)
    for form, words in FORMATS.items():
        binary = found.program("own", form)
        walk = walked(folder, binary)
        if form == "context":
            steps = BinaryWalk(binary, 1)
            walk.write_text(steps.hybrid_script(steps.hybrid(400)))
        made = ["convert", walk, "--binary", binary, *words, found.profile(form), "--quiet"]
        assert main([str(word) for word in made]) == 0
    walk, traces = walked(folder, folder / "own"), found.profile("preaggregated")
    made = [
        "convert", walk, "--binary", folder / "own", "--preaggregated", traces,
        "--unsymbolized", found.profile("unsymbolized"), "--quiet",
    ]  # fmt: skip
    assert main([str(word) for word in made]) == 0
    by_profgen, by_bolt = map(found.profile, WRITTEN_BY_OTHERS)
    run(
        tool("llvm-profgen-22"), f"--perfscript={walk}", f"--binary={folder / 'own'}",
        f"--output={by_profgen}",
    )  # fmt: skip
    run(tool("perf2bolt-22"), folder / "own", "-pa", "-p", traces, "-o", by_bolt)
    return found


SAYS = {
    "build": "another build",
    "program": "another program",
    "architecture": "another architecture",
    "stranger": "another program",
}


def expected(form: str, stranger: str) -> str | None:
    """What is said; None where such a profile serves.

    Lines and probes are those of the source, whatever machine it is compiled for; numbers of
    blocks, of Propeller's clusters and BOLT's YAML, are those of one build.
    """
    if stranger == "architecture" and form not in (*FOR_BOLT, "propeller", "propeller0"):
        return None
    if stranger == "architecture" and form not in BY_OFFSET:
        return SAYS["build"]
    return SAYS[stranger]


@pytest.mark.parametrize("stranger", ["own", *SAYS])
@pytest.mark.parametrize("form", EVERY)
def test_check_says_whose_profile_it_is(command, bench, form, stranger):
    words = ("check", bench.profile(form), "--binary", bench.program(stranger, form))
    said = None if stranger == "own" else expected(form, stranger)
    answer, line = command(*words), command(*words, "--format", "line")
    assert answer.code == line.code == (0 if said is None else 1)
    first = answer.out.splitlines()[0]
    if said is None:
        assert "another" not in answer.out
    else:
        assert first == f"Verdict: {said}'s profile."
        assert answer.out.count("\n  wrong ") == 1
        assert "; refused: " in line.out


@pytest.mark.parametrize("form", FOR_BOLT)
def test_a_stripped_program_is_not_another_one(command, bench, tmp_path, run, form):
    stripped = tmp_path / "stripped"
    run("strip", bench.program("own"), "-o", stripped)
    answer = command("check", bench.profile(form), "--binary", stripped)
    assert (answer.code, "another" in answer.out) == (0, False)


@pytest.mark.parametrize("form", [form for form in EVERY if form not in ("binary", "afdo")])
def test_text_that_is_cut_off_is_no_profile(command, bench, tmp_path, form):
    """Wherever that is; a row more or less than that can't be told."""
    whole, cut = bench.profile(form).read_bytes(), tmp_path / "cut"
    for size in (len(whole) - 2, len(whole) * 2 // 3):
        cut.write_bytes(whole[:size].rstrip(b"\n"))
        answer = command("check", cut, "--binary", bench.program("own", form))
        assert (answer.code, answer.out) == (2, "")


@pytest.mark.parametrize("stranger", ["own", *SAYS])
@pytest.mark.parametrize("form", ["preaggregated", "unsymbolized"])
def test_addresses_alone_tell_no_more_than_that_it_is_another_build(command, bench, form, stranger):
    answer = command("check", bench.profile(form), "--binary", bench.program(stranger))
    if stranger == "own":
        assert (answer.code, "another" in answer.out) == (0, False)
    elif answer.code == 1:
        assert answer.out.startswith("Verdict: another build's profile.\n")
    else:  # of all that was recorded nothing lies where this program has code
        assert (answer.code, answer.out) == (2, "")
        assert "the inputs hold no counts of this binary" in answer.err


@pytest.mark.parametrize("stranger", SAYS)
@pytest.mark.parametrize("form", ["preaggregated", "unsymbolized"])
def test_nothing_is_written_of_addresses_in_another(command, bench, tmp_path, form, stranger):
    program, output = bench.program(stranger), tmp_path / "out"
    words = ("convert", bench.profile(form), "--binary", program, "--llvm", output)
    answer = command(*words)
    assert (answer.code, output.exists()) == (2, False)
    assert "another build was recorded, or another program" in answer.err or (
        "the inputs hold no counts of this binary" in answer.err
    )


@pytest.mark.parametrize("stranger", SAYS)
@pytest.mark.parametrize("form", [form for form in EVERY if not form.startswith("propeller")])
def test_a_profile_to_compare_with_must_be_the_program_s(command, bench, form, stranger):
    """The program's own recording is asked against what is not of it."""
    program = bench.program(stranger, form)
    walk = walked(bench.folder, program)
    said = expected(form, stranger)
    answer = command("check", walk, "--binary", program, "--against", bench.profile(form))
    if said is None:
        assert answer.code == 0
    else:
        assert (answer.code, answer.out) == (2, "")
        assert f"the profile of {said}: " in answer.err


@pytest.mark.parametrize("other", FORMATS)
@pytest.mark.parametrize("form", ["line", "fdata", "afdo", "propeller"])
def test_profiles_of_unlike_kinds_are_not_compared(command, bench, form, other):
    kinds = {"yaml": "fdata", **dict.fromkeys(("line", "binary", "probe", "context"), "llvm")}
    alike = kinds.get(form, form) == kinds.get(other, other) and form != "propeller"
    words = ("check", bench.profile(form), "--binary", bench.program("own", form))
    answer = command(*words, "--against", bench.profile(other))
    assert answer.code == (0 if alike else 2)
    assert alike or "has nothing that compares with" in answer.err


@pytest.mark.parametrize("form", [*FOR_BOLT, "line", "afdo"])
@pytest.mark.parametrize("stranger", ["program", "stranger"])
def test_bolt_lays_nothing_out_by_another_program_s_profile(
    command, bench, tmp_path, form, stranger
):
    option, output = "--yaml" if form == "yaml" else "--fdata", tmp_path / "laid-out"
    program = bench.program(stranger)
    answer = command("bolt", program, option, bench.profile(form), "-o", output)
    assert answer.code == 1
    assert "refused: " in answer.out
    assert not output.exists()


@pytest.mark.parametrize("stranger", SAYS)
@pytest.mark.parametrize("form", FOR_BOLT)
@pytest.mark.parametrize("words", [("report",), ("view",), ("report", "--against")])
def test_nothing_is_reported_of_a_profile_of_another(command, bench, words, form, stranger):
    """Neither alone nor against the program's own recording."""
    program = bench.program(stranger, form)
    name, *option = words
    recorded = [walked(bench.folder, program)] if option == ["--against"] else []
    answer = command(name, *recorded, *option, bench.profile(form), "--binary", program)
    assert (answer.code, answer.out) == (2, "")
    assert f"the profile of {expected(form, stranger)}: " in answer.err


@pytest.mark.parametrize("stranger", ["program", "architecture", "stranger"])
def test_nothing_is_inferred_of_fdata_of_another(command, bench, tmp_path, stranger):
    """That of an earlier build is what inference is for."""
    program, output = bench.program(stranger), tmp_path / "new.fdata"
    words = ("--binary", program, "--infer", "--fdata", output)
    answer = command("convert", bench.profile("fdata"), *words)
    assert (answer.code, answer.out) == (2, "")
    assert f"the profile of {SAYS[stranger]}: " in answer.err
    assert not output.exists()


@pytest.mark.parametrize("stranger", SAYS)
@pytest.mark.parametrize("form", EVERY)
def test_merge_adds_up_what_is_of_the_program(command, bench, tmp_path, form, stranger):
    profile, program = bench.profile(form), bench.program(stranger, form)
    answer = command("merge", profile, profile, "--binary", program, "-o", tmp_path / "all")
    said = expected(form, stranger)
    if form.startswith("propeller"):
        said = "Propeller clusters don't add up"
    elif said is not None:
        said = f"the profile of {said}: "
    assert answer.code == (0 if said is None else 2)
    assert said is None or said in answer.err


@pytest.mark.parametrize("stranger", SAYS)
@pytest.mark.parametrize("form", ["line", "binary", "llvm-profgen", "probe", "context", "afdo"])
def test_no_build_uses_a_profile_of_another(bench, form, stranger):
    """What `lbr2pgo pgo --profile` asks of a stored profile."""
    said = expected(form, stranger)
    words = bench.profile(form), bench.program(stranger, form)
    if said is None:
        assert judge(*words, for_gcc=form == "afdo").usable
        return
    with pytest.raises(InputError, match=f"the profile of {said}: "):
        judge(*words, for_gcc=form == "afdo")


@pytest.mark.parametrize("stranger", ["program", "stranger"])
def test_no_layout_is_carried_over_from_another_program(bench, stranger):
    """What `lbr2pgo pgo --bolt-profile` asks."""
    with pytest.raises(InputError, match="the profile of another program: "):
        refuse_another_program(bench.profile("yaml"), bench.program(stranger))
    refuse_another_program(bench.profile("yaml"), bench.program("build"))
    with pytest.raises(InputError, match="no profile for BOLT"):
        refuse_another_program(bench.program("own"), bench.program("own"))
