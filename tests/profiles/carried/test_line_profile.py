from __future__ import annotations

import subprocess
from pathlib import Path

from builders import sample_profiles
from builders.fixtures import Tool

from lbr2pgo.profiles.carried.account import Account, Way
from lbr2pgo.profiles.carried.line_profile import carried_lines
from lbr2pgo.profiles.carried.source_tree import SourceTree
from lbr2pgo.profiles.carried.successors import Successors
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile

OLD = """\
extern void sink(int);
static int step(int x) {
  return x * 3;
}
int work(int n) {
  int sum = 0;
  while (n > 0) {
    sum += step(n);
    n--;
  }
  sink(sum);
  return sum;
}
"""
PROFILE = """\
work:5000:10
 1: 10
 2: 500
 3: 490
 4: 490
 6: 10 sink:10
 7: 10
 65531: 7
 3: step:490
  1: 490
"""


def parse(profile: str) -> SampleProfile:
    return sample_profiles.parse(profile.encode())


def text(profile: SampleProfile) -> str:
    return sample_profiles.text(profile).decode()


def carried(new: str, profile: str = PROFILE, old: str = OLD) -> tuple[str, Account]:
    trees = (SourceTree({"a.c": source.encode()}, "tree") for source in (old, new))
    made, account = carried_lines(parse(profile), Successors(*trees))
    return text(made), account


def test_the_same_source_changes_nothing() -> None:
    made, account = carried(OLD)
    assert made == text(parse(PROFILE))
    assert (set(account.total()), account.carried()) == ({Way.SAME}, 1.0)


def test_code_without_a_line_follows_the_start_of_its_function() -> None:
    made, account = carried("\n\n" + OLD)
    assert made == text(parse(PROFILE.replace("65531", "65529")))
    assert set(account.total()) == {Way.SAME}


def test_calls_of_code_without_a_line_follow_it() -> None:
    """Of what is inlined there too, in a function of another file, and of contexts."""
    calls = "work:90:10\n 65531: 7 sink:7\n 65531: step:40\n  1: 40\n  65534: 9\n"
    made, _ = carried("\n\n" + OLD, calls)
    assert made == text(parse(calls.replace("65531", "65529").replace("65534", "65532")))
    contexts = "[work:65531 @ step]:49:49\n 1: 40\n 65534: 9\n"
    made, _ = carried("\n\n" + OLD, contexts)
    assert made == text(parse(contexts.replace("65531", "65529").replace("65534", "65532")))


def test_code_of_a_lambda_without_a_line_follows_where_that_starts() -> None:
    """Its name is no function's of the source, whatever else is called so."""
    old = OLD + "int Other::operator()(int x) {\n  return x;\n}\n"
    new = "\n\n" + old.replace("  int sum = 0;", "  x();\n  int sum = 0;")
    profile = "_ZZ4workENKUliE_clEi:9:1\n 0: 3\n 1: 3\n {}: 3\n"
    made, account = carried(new, PROFILE + profile.format(65536 - 8), old)
    assert text(parse(profile.format(65536 - 8 - 3))) in made
    assert account.ways["_ZZ4workENKUliE_clEi"] == {Way.UNKNOWN: 9}
    elsewhere = profile.format(65536 - 99)
    assert text(parse(elsewhere)) in carried(new, PROFILE + elsewhere, old)[0]


def test_lines_move_and_calls_go_with_them() -> None:
    new = OLD.replace("  int sum = 0;\n", "  int sum = 0;\n  if (n > 99)\n    return -1;\n")
    made, account = carried(new)
    assert " 5: 490\n 6: 490\n 8: 10 sink:10\n 9: 10\n" in made
    assert " 5: step:490\n  1: 490\n" in made
    assert account.total() == {Way.PLACE: 1517, Way.SAME: 490}


def test_a_new_line_has_the_count_of_its_block() -> None:
    made, _ = carried(OLD.replace("    n--;", "    check(n);\n    n--;"))
    assert " 3: 490\n 4: 490\n 5: 490\n" in made


def test_a_line_that_is_gone_takes_what_was_inlined_there_with_it() -> None:
    made, account = carried(OLD.replace("    sum += step(n);\n", ""))
    assert "step" not in made
    assert account.lost() == {"step": 490, "work": 490}
    assert (account.carried(), account.gone) == (1 - 980 / 2007, set())
    assert made.startswith(f"work:{(5000 - 490) * 1027 // 1517}:10\n")


def test_a_call_on_a_line_that_was_split_is_where_it_is_named() -> None:
    new = OLD.replace("  sink(sum);", "  if (sum)\n    sink(sum);")
    made, _ = carried(new.replace("    sum += step(n);", "    sum +=\n      step(n);"))
    assert " 4: step:490\n" in made


def test_a_function_of_another_name() -> None:
    new = OLD.replace("step", "triple").replace("sink", "drain").replace("work", "run")
    made, account = carried(new)
    assert made.startswith("run:4510:10\n")
    assert account.renamed == {"work": "run"}  # the other is too short to tell
    assert account.gone == {"step"}


def test_what_was_split_off_has_its_counts() -> None:
    loop = "".join(f"    sum += part{number}(n);\n" for number in range(5))
    loop = f"  while (n > 0) {{\n{loop}    sum += step(n);\n  }}\n"
    start, end = OLD.index("  while"), OLD.index("  sink")
    old = OLD[:start] + loop + OLD[end:]
    new = OLD[:start] + "  sum = total(n);\n" + OLD[end:]
    new += f"static int total(int n) {{\n  int sum = 7;\n{loop}  return sum - 7;\n}}\n"
    profile = (
        "work:900:10\n 1: 10\n 2: 90\n 4: 80 part1:80\n 10: 10\n 65531: 5\n 8: step:80\n  1: 80\n"
    )
    made, account = carried(new, profile, old)
    assert made == (
        "total:794:90\n 2: 90\n 4: 80 part1:80\n 8: step:80\n  1: 80\n"
        "work:105:10\n 1: 10\n 2: 10\n 3: 10\n 65531: 5\n"
    )
    assert account.split == {"work": ("total",)}
    assert account.lost() == {}


def test_a_function_of_which_little_is_left_is_dropped() -> None:
    new = OLD[: OLD.index("  int sum")] + "  return other(n);\n}\n"
    made, account = carried(new)
    assert (made, account.dropped) == ("", {"work"})
    assert account.carried() == 0


def test_a_function_without_a_source_stays() -> None:
    other = "zlib:9:1\n 1: 9 other:9\n"
    made, account = carried("\n" + OLD, PROFILE + other)
    assert text(parse(other)) in made
    assert account.ways["zlib"] == {Way.UNKNOWN: 9}


NESTED = """\
work:600:10
 1: 10
 3: step:490
  1: 490
  !Attributes: 2
 !Attributes: 1
"""
CONTEXTS = """\
[work:3 @ step]:490:490
 1: 490
 !Attributes: 2
[main:4.1 @ work:3 @ step]:70:70
 1: 70
[work]:30:10
 6: 10
"""


def test_decisions_of_the_pre_inliner_stay() -> None:
    made, _ = carried(OLD, NESTED)
    assert made == text(parse(NESTED))


def test_contexts_follow_their_calls() -> None:
    made, account = carried(OLD.replace("  int sum = 0;\n", "  int sum = 0;\n  x();\n"), CONTEXTS)
    new = CONTEXTS.replace("work:3", "work:4").replace(" 6: 10", " 7: 10")
    assert made == text(parse(new))
    assert account.total() == {Way.SAME: 560, Way.PLACE: 10}


def test_a_context_loses_the_callers_beyond_a_call_that_is_gone() -> None:
    made, _ = carried(OLD.replace("    sum += step(n);\n", ""), CONTEXTS)
    assert "[step]:560:560\n 1: 560\n !Attributes: 2\n" in made
    assert "@" not in made


def test_clang_finds_as_much_of_it_as_of_a_fresh_one(tmp_path: Path, tool: Tool) -> None:
    """By its own check of how many records of a profile it could use."""

    def used(source: str, profile: str) -> str:
        (tmp_path / "a.c").write_text(source)
        (tmp_path / "a.prof").write_text(profile)
        flags = ("-O2", "-g1", "-fdebug-info-for-profiling", "-fprofile-sample-use=a.prof",
                 "-mllvm", "-sample-profile-check-record-coverage=101", "-c", "a.c")  # fmt: skip
        command = [tool("clang-22"), *flags]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stderr.partition("available")[0].rpartition(": ")[2]

    new = OLD.replace("  int sum = 0;", "  // Why\n  // not?\n  int sum = 0;")
    made, _ = carried(new)
    assert used(OLD, PROFILE) == used(new, made) != used(new, PROFILE)


def test_totals_end_where_a_profile_does() -> None:
    largest = str(2**64 - 1)
    inlined = f" 3: step:{largest}\n  1: 490\n 4: step:{largest}\n  1: 490\n"
    made, _ = carried(OLD, f"work:{largest}:10\n 1: 10\n{inlined}")
    assert made == text(parse(made))
    assert made.startswith(f"work:{largest}:10\n")
