"""Change code in small ways, one at a time, and see whether a test notices: `make mutants`.

cosmic-ray makes the changes, in a copy of the project, in random order by a seed, until the time is
over. A mutant meets the tests of its module first, then those of the modules that import it, and at
last those that go the whole road. Fails if fewer than nine tenths are killed; `mutants.toml` holds
those that no test can kill, and why.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shlex
import shutil
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import monotonic

from builders.fixtures import ROOT
from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.plugins import get_operator, operator_names
from cosmic_ray.testing import run_tests
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkResult
from test_imports import every_import
from test_mirror import NOTHING_TO_TEST, TESTED_AS_A_WHOLE, has_doctest, own_test

COPY = ROOT / "build" / "mutants"
ROOMS = ("counting", "replay", "evidence", "profiles")
ENOUGH = 0.9
PYTEST = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=0")

FAST = ("-m", "not slow and not long")
WHOLE = (
    "tests/test_conversion.py", "tests/test_no_lbr.py", "tests/profiles/test_reader.py",
    "tests/evidence/test_second_look.py", "tests/reports/test_gather.py",
    "tests/cli/test_output_matrix.py", "tests/cli/test_check.py", "tests/fleet/test_merge.py",
)  # fmt: skip
"""Tests that go the whole road in seconds."""

SAME = (
    "RemoveDecorator",  # most are caches
    "_Eq_Is", "_NotEq_IsNot", "_Is_Eq", "_IsNot_NotEq",  # the same for None and small numbers
    "_BitAnd_Mul", "_BitOr_Add",  # the same for truth values, and for flags put together
)  # fmt: skip
"""Ends of the names of operators whose mutants are the code itself."""

Position = tuple[int, int]


@dataclass(frozen=True)
class Mutant:
    """One change of one place."""

    module: str
    operator: str
    occurrence: int
    start: Position
    end: Position

    def spec(self) -> MutationSpec:
        return MutationSpec(
            module_path=COPY / "lbr2pgo" / self.module,
            operator_name=self.operator,
            occurrence=self.occurrence,
            start_pos=self.start,
            end_pos=self.end,
        )


def modules() -> list[str]:
    found = (path for room in ROOMS for path in (ROOT / "lbr2pgo" / room).rglob("*.py"))
    names = (path.relative_to(ROOT / "lbr2pgo").as_posix() for path in found)
    return sorted({*names} - {*NOTHING_TO_TEST})


def silent_parts(path: Path) -> list[tuple[Position, Position]]:
    """What is never run, or makes sure of what is so: types, decorators, `strict`."""
    parts: list[ast.expr | ast.stmt | None] = []
    for node in ast.walk(ast.parse(path.read_text())):
        parts += getattr(node, "decorator_list", [])
        parts += [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.keyword) and node.arg == "strict":
            parts.append(node.value)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
            parts += [node.test, *node.body] if node.test.id == "TYPE_CHECKING" else []
    return [
        ((part.lineno, part.col_offset), (part.end_lineno or 0, part.end_col_offset or 0))
        for part in parts
        if part is not None
    ]


@cache
def places_of(module: str) -> list[list[Mutant]]:
    """The mutants of each place of a module that has some."""
    path = COPY / "lbr2pgo" / module
    silent, nodes = silent_parts(path), list(ast_nodes(get_ast_from_path(path)))
    found: dict[Position, list[Mutant]] = {}
    for name in operator_names():
        kind = get_operator(name)
        if name.endswith(SAME) or kind.arguments():
            continue
        operator = kind()
        places = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(places):
            if not any(first <= start <= past for first, past in silent):
                found.setdefault(start, []).append(Mutant(module, name, occurrence, start, end))
    return list(found.values())


def sample(seed: int, beginning: str) -> Iterator[Mutant]:
    """Mutants in random order, as many of a module as it is long; ends when few are left."""
    chance = random.Random(seed)
    names = [name for name in modules() if name.startswith(beginning)]
    lengths = [len((ROOT / "lbr2pgo" / name).read_bytes()) for name in names]
    known: set[Mutant] = set()
    repeated = 0
    while repeated < 1000:
        (module,) = chance.choices(names, lengths)
        places = places_of(module)
        mutant = chance.choice(chance.choice(places)) if places else None
        if mutant is None or mutant in known:
            repeated += 1
            continue
        known.add(mutant)
        yield mutant


def own_tests(module: str) -> list[str]:
    """Paths of the tests that stand where the module does, or are named for it."""
    named = TESTED_AS_A_WHOLE.get(module)
    path = ROOT / "tests" / named if named else own_test(module)
    found = [path.relative_to(ROOT).as_posix()] if path.exists() else []
    return [*found, f"lbr2pgo/{module}"] if has_doctest(module) else found


@cache
def importers() -> dict[str, set[str]]:
    """Of each module, those that import it."""
    found: dict[str, set[str]] = {}
    for module, names in every_import():
        for name in names:
            found.setdefault(f"{name}.py", set()).add(f"{module}.py")
    return found


def rounds(module: str) -> Iterator[list[str]]:
    """Arguments of pytest: the tests of a module, of those that import it, and of the whole."""
    own = own_tests(module)
    if own:
        yield [*FAST, *own]
    more = {test for user in importers().get(module, ()) for test in own_tests(user)} - {*own}
    if more:
        yield [*FAST, *sorted(more)]
    format_or_room = Path(*Path(module).parent.parts[:2])
    yield [*FAST, *WHOLE, f"tests/{format_or_room.as_posix()}"]


def command(tests: list[str]) -> str:
    return shlex.join([sys.executable, *PYTEST, *tests])


def time_now(tests: str) -> float:
    """Seconds of tests without a mutant; they have to pass."""
    start = monotonic()
    outcome, output = run_tests(tests, 1200)
    if outcome is not TestOutcome.SURVIVED:
        raise SystemExit(f"without a mutant this fails already: {tests}\n{output}")
    return monotonic() - start


time_of = cache(time_now)


def result_of(mutant: Mutant, tests: str) -> WorkResult:
    """What tests say of a mutant; out of time they are only where they end soon without it."""
    limit = 30 + 5 * time_of(tests)
    while True:
        result = mutate_and_test([mutant.spec()], tests, limit)
        forget_compiled(mutant.module)
        if result.output != "timeout" or time_now(tests) < limit / 4:
            return result
        limit *= 4  # the machine has more to do than it had


def forget_compiled(module: str) -> None:
    """Python tells a mutant's code from the module's by its second and its size alone."""
    path = COPY / "lbr2pgo" / module
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
        compiled.unlink()


def survivor(mutant: Mutant) -> str | None:
    """The lines that no test told apart; None for a mutant that was killed."""
    changed = ""
    for tests in map(command, rounds(mutant.module)):
        result = result_of(mutant, tests)
        if result.worker_outcome is not WorkerOutcome.NORMAL:
            raise SystemExit(f"{mutant}: {result.output}")
        if result.is_killed:
            return None
        changed = result.diff or ""
    lines = changed.splitlines()[4:]
    return "\n".join(line for line in lines if line.startswith(("-", "+")))


@cache
def explained() -> set[tuple[str, str]]:
    """Modules and changes that can't be killed; a line alone stands for any change of it."""
    listed = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())["mutant"]
    found = {(each["module"], each["change"].strip("\n")) for each in listed}
    for module, change in found:
        line = change.partition("\n")[0].removeprefix("-")
        if line not in (ROOT / "lbr2pgo" / module).read_text().splitlines():
            raise SystemExit(f"mutants.toml explains what {module} does not have: {line}")
    return found


def is_explained(module: str, change: str) -> bool:
    line = change.partition("\n+")[0]
    return not {(module, change), (module, line)}.isdisjoint(explained())


def copy_project() -> None:
    """With what is compiled: only what is changed is compiled again."""
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy2(path, COPY)
        elif path.name in ("lbr2pgo", "tests", "testbins", "docs", "examples", "benchmarks"):
            shutil.copytree(path, COPY / path.name)
    beside = COPY.parent / "shared"  # where the tests find the corpus
    beside.unlink(missing_ok=True)
    beside.symlink_to(ROOT.parent / "shared")
    os.chdir(COPY)
    os.environ["PYTHONPATH"] = str(COPY)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--only", default="", help="modules whose path begins so")
    given = parser.parse_args()
    explained()
    copy_project()
    until = monotonic() + 60 * given.minutes
    tried, left = 0, 0
    for mutant in sample(given.seed, given.only):
        if monotonic() > until:
            break
        change = survivor(mutant)
        if change is not None and is_explained(mutant.module, change):
            continue
        tried += 1
        if change is not None:
            left += 1
            print(f"{mutant.module}:{mutant.start[0]}: {mutant.operator}\n{change}\n", flush=True)
    if not tried:
        raise SystemExit("there was no time for a single mutant")
    print(f"{tried - left} of {tried} mutants were killed: {1 - left / tried:.1%}")
    return left > (1 - ENOUGH) * tried


if __name__ == "__main__":
    raise SystemExit(main())
