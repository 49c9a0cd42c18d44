from __future__ import annotations

from lbr2pgo.profiles.carried.source_tree import SourceTree
from lbr2pgo.profiles.carried.successors import Successors

BODY = "  int total = first(x);\n  total += second(x);\n  total *= third(x);\n  return total;\n"


def tree(**files: str) -> SourceTree:
    return SourceTree({f"{name}.c": text.encode() for name, text in files.items()}, "tree")


def function(name: str, body: str = BODY) -> str:
    return f"int {name}(int x) {{\n{body}}}\n"


def later(old: SourceTree, new: SourceTree, name: str, file: str = "a.c") -> str | None:
    (one,) = (each for each in old.by_name[name] if each.file == file)
    found = Successors(old, new).of(one)
    return None if found is None else f"{found.file}:{found.start} {found.name}"


def test_by_name_wherever_it_is_now() -> None:
    old = tree(a=function("f"), b=function("g"))
    assert later(old, tree(a=function("h") + function("f")), "f") == "a.c:7 f"
    assert later(old, tree(b=function("f", "  return 1;\n")), "f") == "b.c:1 f"


def test_of_one_name_the_nearest() -> None:
    old = tree(a=function("f"), b=function("f", "  return other(x);\n"))
    new = tree(b=function("f", "  return other(x) + 1;\n"), c="\n" + function("f"))
    assert later(old, new, "f") == "c.c:2 f"
    assert later(old, new, "f", "b.c") == "b.c:1 f"


def test_another_name_with_most_of_the_lines() -> None:
    old = tree(a=function("f") + function("g", "  return 7;\n"))
    assert later(old, tree(a=function("walk", BODY + "  more();\n")), "f") == "a.c:1 walk"
    assert later(old, tree(a=function("walk", "  return 1;\n")), "f") is None
    assert later(old, tree(a=function("h", "  return 7;\n")), "g") is None  # too short to tell


def test_a_name_that_was_there_is_no_new_name() -> None:
    old = tree(a=function("f") + function("g"))
    assert later(old, tree(a=function("g")), "f") is None


def test_a_file_that_is_as_before_is_not_looked_into() -> None:
    old = tree(a=function("f"))
    assert Successors(old, tree(a=function("f"))).of(old.by_name["f"][0]) == old.by_name["f"][0]


def test_functions_that_were_split_off() -> None:
    old = tree(a=function("f", "  begin(x);\n" + BODY))
    new = tree(
        a=function("f", "  begin(x);\n  return part(x);\n") + function("part", "  a();\n" + BODY),
        b=function("copy"),
    )
    (one,) = old.by_name["f"]
    successors = Successors(old, new)
    assert [each.name for each in successors.split_off(one, [2, 3, 4, 5])] == ["part"]
    assert list(successors.split_off(one, [1])) == []
