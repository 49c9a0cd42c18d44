from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import sample_profiles
from builders.fixtures import Tool
from builders.probed_builds import FLAGS, ProbedBuild, built

from lbr2pgo.profiles.carried.account import Account, Way
from lbr2pgo.profiles.carried.carry import carry
from lbr2pgo.profiles.carried.probe_fates import carried_probes
from lbr2pgo.profiles.llvm import extbinary, text
from lbr2pgo.profiles.llvm.sample_names import Frame, guid
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile
from lbr2pgo.profiles.llvm.sample_quality import compare
from lbr2pgo.program.demangle import short_name, without_unique_suffix
from lbr2pgo.program.program import Program
from lbr2pgo.support.errors import InputError

Builds = tuple[ProbedBuild, ProbedBuild]


def carried(builds: Builds, profile: SampleProfile) -> tuple[SampleProfile, Account]:
    old, new = builds
    return carried_probes(profile, Program.open(old.program), Program.open(new.program))


def named(profile: SampleProfile) -> dict[str, FunctionSamples]:
    return {
        short_name(without_unique_suffix(str(each.name))): each
        for each in profile.functions.values()
    }


def hot(body: dict[tuple[int, int], int]) -> dict[int, int]:
    """What ran: that nothing is told of a probe says the same as zero here."""
    return {index: count for (index, _), count in body.items() if count}


def test_the_same_build_changes_nothing(probed_builds: Builds) -> None:
    old, _ = probed_builds
    profile = text.read(old.profile)
    made, account = carried((old, old), profile)
    assert sample_profiles.text(made) == old.profile.read_bytes()
    assert account.ways_of_all() == [Way.SAME]


def test_counts_are_those_of_the_new_build(probed_builds: Builds) -> None:
    old, new = probed_builds
    before, fresh = text.read(old.profile), text.read(new.profile)
    made, account = carried(probed_builds, before)
    found, wanted = named(made), named(fresh)
    for name in ("same", "after", "typed"):
        assert hot(found[name].body) == hot(wanted[name].body), name
    told = hot(found["grown"].body)
    assert told == {i: n for i, n in hot(wanted["grown"].body).items() if i in told}
    assert found["grown"].total == sum(told.values()) > 0.7 * wanted["grown"].total
    assert {(i, n) for i, n in hot(wanted["piece"].body).items()} & set(
        hot(found["piece"].body).items()
    ) >= {(5, 4921), (8, 5113), (12, 20017), (16, 5873)}
    assert all(each.checksum == wanted[name].checksum for name, each in found.items())
    assert compare(made, fresh).similarity > 0.85 > 0.65 > compare(before, fresh).similarity
    assert list(account.renamed) == ["before", *(n for n in account.renamed if "typed" in n)]
    assert account.split == {"whole": ("piece",)}
    assert account.gone == {"gone"}


def test_calls_have_their_new_place_and_name(probed_builds: Builds) -> None:
    old, new = probed_builds
    made, _ = carried(probed_builds, text.read(old.profile))
    fresh = named(text.read(new.profile))
    for name in ("grown", "after", "main"):
        assert named(made)[name].call_targets == fresh[name].call_targets
    assert named(made)["main"].callsites.keys() == fresh["main"].callsites.keys()


def test_clang_takes_all_of_it(probed_builds: Builds, tool: Tool, tmp_path: Path) -> None:
    old, new = probed_builds
    made, _ = carried(probed_builds, text.read(old.profile))
    text.write(made, tmp_path / "new.prof")

    def refused(profile: Path) -> str:
        staleness = ("-mllvm", "-report-profile-staleness")
        words = (*FLAGS, "-w", "-c", f"-fprofile-sample-use={profile}", *staleness, "app.c", "-o")
        done = subprocess.run(
            [tool("clang-22"), *words, tmp_path / "app.o"],
            cwd=new.folder, check=True, capture_output=True, text=True,
        )  # fmt: skip
        found = re.search(r"\((\d+)/\d+\) of functions' profile are invalid", done.stderr)
        assert found is not None, done.stderr
        return found[1]

    assert refused(old.profile) != "0"
    assert refused(tmp_path / "new.prof") == "0"


def test_names_may_be_hashes(probed_builds: Builds, tmp_path: Path) -> None:
    old, _ = probed_builds
    by_name, _ = carried(probed_builds, text.read(old.profile))
    hashed = tmp_path / "hashed.prof"
    extbinary.write(text.read(old.profile), hashed, extbinary.Options(md5_names=True))
    made, account = carried(probed_builds, extbinary.read(hashed))
    assert {guid(name) for name in by_name.functions} == set(made.functions)
    body = made.functions[guid("after")].body
    assert body == by_name.functions["after"].body
    assert str(guid("gone")) in account.gone


def test_contexts_go_with_their_calls(probed_builds: Builds) -> None:
    """Where a caller's place is gone, the context begins behind it."""
    old, new = probed_builds
    flat = text.read(old.profile)
    calls = {
        target: location
        for location, targets in flat.functions["grown"].call_targets.items()
        for target in targets
    }
    site = calls["same"]
    deep = (Frame("gone", (1, 0)), Frame("grown", site), Frame("same"))
    profile = replace(flat, is_cs=True, functions={})
    for context in (deep, (Frame("before", (7, 0)), Frame("same"))):
        profile.functions[context] = replace(flat.functions["same"], context=context)
    made, _ = carried(probed_builds, profile)
    (there,) = text.read(new.profile).functions["grown"].call_targets
    assert set(made.functions) == {
        (Frame("grown", there), Frame("same")), (Frame("after", (7, 0)), Frame("same"))
    }  # fmt: skip


def test_what_the_old_build_lacks_is_kept(probed_builds: Builds) -> None:
    profile = sample_profiles.parse(
        b"grown:30:3\n 1: 3\n 9: 27\n !CFGChecksum: 12\nelse:5:5\n 1: 5\n !CFGChecksum: 7\n"
    )
    made, account = carried(probed_builds, profile)
    assert sample_profiles.text(made) == sample_profiles.text(profile)
    assert account.ways_of_all() == [Way.UNKNOWN]


def test_functions_of_one_name_are_left_as_they_were(tool: Tool, tmp_path: Path) -> None:
    """Nobody can tell which of them a count is of."""
    either, loop = "if (x > 5) return g(x); return 1;", "while (x > 3) x -= g(x); return x;"
    programs = []
    for name, bodies in {"old": (either, either), "new": (loop, "return g(g(x));")}.items():
        files = [tmp_path / f"{name}{i}.c" for i in range(2)]
        for file, body, rest in zip(files, bodies, ("main", "other"), strict=True):
            file.write_text(
                f"int g(int);\n__attribute__((noinline)) static int f(int x) {{ {body} }}\n"
                f"int {rest}(int x) {{ return f(x); }}\n"
                + ("int g(int x) { return x / 3; }\n" if rest == "main" else "")
            )
        flags = ("-O1", FLAGS[-1], "-fno-unique-internal-linkage-names", "-w")
        out = tmp_path / name
        subprocess.run([tool("clang-22"), *flags, *files, "-o", out], check=True)
        programs.append(Program.open(out))
    known = programs[0].probes.descriptors
    checksum = int(known.checksum[known.rows(np.array([guid("f")], np.uint64))[0]])
    profile = sample_profiles.parse(f"f:9:3\n 1: 3\n 2: 6\n !CFGChecksum: {checksum}\n".encode())
    made, account = carried_probes(profile, *programs)
    assert sample_profiles.text(made) == sample_profiles.text(profile)
    assert account.ways_of_all() == [Way.UNKNOWN]


def test_refusals(probed_builds: Builds, command, tool: Tool, tmp_path: Path) -> None:
    old, new = probed_builds
    with pytest.raises(InputError, match=r"is of .*old/app, not of .*new/app\nExchange them"):
        carry(old.profile, new.program, old.program)
    plain = built("carried_new.c", tmp_path / "plain", tool("clang-22"), "-O2", "-g").program
    with pytest.raises(InputError, match=r"plain/app: has no pseudo probes\nBuild it with"):
        carry(old.profile, old.program, plain)
    other = built("inlining.c", tmp_path / "other", tool("clang-22")).program
    with pytest.raises(InputError, match=r"nothing in .*other/app is what .*old/app had"):
        carry(old.profile, old.program, other)
    with pytest.raises(InputError, match="the profile of another program"):
        carry(old.profile, other, new.program)
    lines, exact = tmp_path / "lines.prof", old.folder / "app.exact"
    words = (exact, "--binary", old.program, "--llvm", lines, "--probes", "off")
    assert command("convert", *words).code == 0
    with pytest.raises(InputError, match="does not tell of code\nName the source trees"):
        carry(lines, old.program, new.program)
