"""Functions of two builds."""

from __future__ import annotations

from builders.bolt import Assemble, function

from lbr2pgo.profiles.carried.code_successors import CodeSuccessors
from lbr2pgo.program.program import Program

BODY = (
    "\n".join(f"add ${i}, %e{r}x\nxor %e{r}x, %edi" for i, r in enumerate("abcdabcd", 1)) + "\nret"
)
SHORT = "inc %eax\nret"


def successors(old: Program, new: Program, *names: str) -> CodeSuccessors:
    return CodeSuccessors(old, new, names, bolted=False)


def told(found: CodeSuccessors) -> dict[str, str | None]:
    there = {name: found.of(number) for name, number in found.number.items()}
    return {name: None if to is None else found.new_names[to] for name, to in there.items()}


def test_names_go_first(assemble: Assemble) -> None:
    old = assemble(function("_start", SHORT) + function("f", BODY))
    new = assemble(function("f", SHORT) + function("other", BODY) + function("_start", SHORT))
    found = successors(old, new, "f", "_start")
    assert told(found) == {"f": "f", "_start": "_start"}
    assert found.renamed == {}


def test_a_function_of_another_name_is_told_by_what_it_does(assemble: Assemble) -> None:
    old = assemble(function("_start", SHORT) + function("f", BODY) + function("g", SHORT))
    new = assemble(
        function("_start", SHORT) + function("h", BODY.replace("$8", "$9")) + function("i", SHORT)
    )
    found = successors(old, new, "f", "g", "[unknown]")
    assert told(found) == {"f": "h", "g": None}  # so short ones may be alike by chance
    assert found.renamed == {"f": "h"}
    assert found.changed(found.number["f"]) is None


def test_one_of_another_size_is_not_the_same(assemble: Assemble) -> None:
    old = assemble(function("_start", SHORT) + function("f", BODY))
    new = assemble(function("_start", SHORT) + function("h", (BODY[:-4] + "\n") * 3 + "ret"))
    assert told(successors(old, new, "f")) == {"f": None}


def test_local_functions_of_one_name_are_told_apart(assemble: Assemble) -> None:
    parts = [
        f'.file "{file}.c"\n.type f, @function\n.L{file}: {body}\n.set f, .L{file}\n'
        for file, body in (("a", BODY), ("b", BODY.replace("xor", "or")))
    ]
    old, new = (assemble(function("_start", SHORT) + part) for part in parts)
    assert told(successors(old, new, "f/1")) == {"f/1": "f/1"}


def test_what_changed_is_told(assemble: Assemble) -> None:
    old = assemble(function("_start", "je 1f\ninc %eax\n1: ret") + function("f", BODY))
    new = assemble(function("_start", "je 1f\nnop\ninc %eax\n1: ret") + function("f", BODY))
    found = successors(old, new, "_start", "f")
    changed = found.changed(found.number["_start"])
    assert changed is not None
    assert dict(changed.blocks) == {0: 0, 1: 1, 2: 2}
    assert found.changed(found.number["f"]) is None
