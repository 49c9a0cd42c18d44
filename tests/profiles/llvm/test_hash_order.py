import random

import pytest

from lbr2pgo.profiles.llvm.hash_order import table_order

TABLE = """
#include <cstdio>
#include <unordered_map>
int main() {
  std::unordered_map<unsigned long, int> table;
  unsigned long hash;
  for (int i = 0; std::scanf("%lu", &hash) == 1; i++) table.try_emplace(hash, i);
  for (auto &entry : table) std::printf("%d ", entry.second);
}
"""


@pytest.fixture(scope="module")
def table(tool, run, tmp_path_factory):
    directory = tmp_path_factory.mktemp("table")
    (directory / "table.cc").write_text(TABLE)
    run(tool("g++"), "-std=c++17", directory / "table.cc", "-o", directory / "table")
    return directory / "table"


@pytest.mark.parametrize("count", [0, 1, 2, 12, 13, 14, 28, 29, 30, 59, 60, 1000, 50_000])
def test_the_order_is_that_of_the_standard_library(table, run, count):
    noise = random.Random(count)
    hashes = noise.sample(range(2 * count), count)[: count // 2]
    hashes += [noise.getrandbits(64) for _ in range(count - len(hashes))]
    walked = run(table, input=" ".join(map(str, hashes))).stdout
    assert table_order(hashes) == [int(index) for index in walked.split()]


def test_the_first_buckets():
    assert table_order([]) == []
    assert table_order([5]) == [0]
    assert table_order([5, 6, 18, 19]) == [3, 1, 2, 0]
