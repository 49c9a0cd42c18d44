"""Exact counts by function, on programs whose calls are known by their source."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from builders.fixtures import Tool

from lbr2pgo.analyses.costs import Costs, costs
from lbr2pgo.model.exact_counts import ExactCounts
from lbr2pgo.pgo.measure import Candidate, count_exactly
from lbr2pgo.program.program import Program

SOURCE = """\
#include <stdlib.h>
KEEP static int work(int x) { for (int i = x & 3; i; i--) x ^= x << i; return x; }
__attribute__((noinline)) static int odd(int x) { return work(x) | 1; }
__attribute__((noinline)) static int even(int x) { return work(x) & ~1; }
int (*volatile chosen[])(int) = {even, odd};
__attribute__((noinline)) static int chain(int x) { return odd(x * 3); }
int main(int n, char **words) {
    int sum = 0, rounds = atoi(words[1]);
    for (int i = 0; i < rounds; i++) sum += chosen[i % 4 == 0](i) + chain(i);
    return sum == 42;
}
"""
ROUNDS = 400


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Costs, ExactCounts]]:
    """What the program does, and its counts, with `work` as this macro has it."""
    folder = tmp_path_factory.mktemp("costs")
    (folder / "a.c").write_text(SOURCE)

    def run(keep: str, *, in_source: bool = True) -> tuple[Costs, ExactCounts]:
        build = folder / "app"
        flags = ["-O2", "-g1", "-Wl,--build-id", f"-DKEEP=__attribute__(({keep}))"]
        subprocess.run(["clang-22", *flags, folder / "a.c", "-o", build], check=True)
        [(_, file)] = count_exactly([Candidate("app", (str(build), str(ROUNDS)))], folder)
        exact, program = ExactCounts.load(file), Program.open(build)
        image = exact.find_image(program.image.build_id, str(build))
        assert image is not None
        return costs(exact, image, program, in_source=in_source), exact

    return run


@pytest.fixture(autouse=True)
def _needs(tool: Tool) -> None:
    tool("clang-22"), tool("qemu-x86_64")


def test_calls_are_counted_by_function_and_caller(
    counted: Callable[..., tuple[Costs, ExactCounts]],
) -> None:
    found, _ = counted("noinline")
    odd = ROUNDS // 4
    assert found.indirect_calls["odd", "main"] == odd
    assert found.indirect_calls["even", "main"] == ROUNDS - odd
    assert found.calls["chain", "main"] == ROUNDS
    assert found.calls["odd", "chain"] == ROUNDS  # jumps to its beginning: a tail call
    assert found.calls["work", "odd"] == odd + ROUNDS
    assert found.returns["work", "odd"] == odd + ROUNDS
    assert found.returns["odd", "main"] == odd + ROUNDS  # chain is not returned to


def test_what_was_inlined_is_told_of_by_its_source(
    counted: Callable[..., tuple[Costs, ExactCounts]],
) -> None:
    found, _ = counted("always_inline")
    assert not any(callee == "work" for callee, _ in found.calls)
    assert found.instructions["work"] > 2 * ROUNDS
    assert found.jumps["work"] > 0


def test_by_symbols_it_is_told_of_by_where_it_went(
    counted: Callable[..., tuple[Costs, ExactCounts]],
) -> None:
    by_source, _ = counted("always_inline")
    by_symbol, _ = counted("always_inline", in_source=False)
    assert "work" not in by_symbol.instructions
    assert by_symbol.instructions.total() == by_source.instructions.total()


def test_nothing_is_lost_and_nothing_counted_twice(
    counted: Callable[..., tuple[Costs, ExactCounts]],
) -> None:
    found, exact = counted("noinline")
    image = exact.images.index(next(name for name in exact.images if name.endswith("/app")))
    taken = exact.taken & (exact.from_image == image)
    parts = found.calls, found.indirect_calls, found.returns, found.jumps
    assert sum(part.total() for part in parts) == exact.count[taken].sum()
    assert found.instructions.total() < exact.totals.instructions
