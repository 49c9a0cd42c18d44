"""Counts as Parquet: there and back, read by DuckDB, written by other tools, damaged."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, BranchCounts, aggregate
from lbr2pgo.profiles.counts.parquet_counts import write
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import BuildSource
from lbr2pgo.sources.parquet_counts import ParquetCounts
from lbr2pgo.support.errors import InputError

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

WHOLE = BRANCH | FROM | TO | END
COLUMNS = ("from_", "to", "end", "known", "count", "mispredicted", "prediction_unknown")

words = st.integers(0, 5) | st.just(2**64 - 1)
rows = st.lists(st.tuples(words, words, words, st.just(WHOLE), st.integers(1, 2**40)), max_size=8)


def counts_of(rows: list[tuple[int, ...]], build_id: str | None) -> BranchCounts:
    from_, to, end, known, count = (np.array([r[i] for r in rows], np.uint64) for i in range(5))
    half = count // np.uint64(2)
    found = aggregate(from_, to, end, known.astype(np.uint8), count, half, half, build_id=build_id)
    tally = {"branches_read": found.branch_total(), "branches_in_image": found.branch_total()}
    return BranchCounts(*(getattr(found, name) for name in COLUMNS), build_id, tally)


def content(counts: BranchCounts) -> tuple[object, ...]:
    columns = [getattr(counts, name).tolist() for name in COLUMNS]
    return columns, counts.build_id, dict(counts.tallies)


def layout(build_id: str | None) -> ImageLayout:
    return ImageLayout("/bin/x", build_id, "x86-64", True, ())


def header(**fields: object) -> str:
    return json.dumps({"version": 1, "weight": "1", "tallies": {}, **fields})


ONE = counts_of([(1, 2, 3, WHOLE, 4), (2**64 - 1, 0, 9, WHOLE, 5)], "aa")
OTHER = counts_of([(1, 2, 3, WHOLE, 40)], "bb")
NAMELESS = counts_of([(7, 8, 9, WHOLE, 1)], None)


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    """A file as another tool writes it: columns by their names."""

    def make(metadata: dict[str, str] | None = None, **columns: Any) -> Path:
        numbers = {name: arrow.array([1, 2], "int64") for name in ("from", "to", "end")}
        numbers |= {"known": [WHOLE] * 2, "count": [10, 20], "mispredicted": [0, 1]}
        given = {k: v for k, v in {**numbers, **columns}.items() if v is not None}
        made = arrow.table(given).replace_schema_metadata(metadata)
        parquet.write_table(made, tmp_path / "x.parquet")
        return tmp_path / "x.parquet"

    return make


@given(rows, rows, st.booleans())
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, one: Any, other: Any, is_nameless: bool
) -> None:
    path = tmp_path_factory.mktemp("there") / "x"
    builds = [counts_of(one, "aa"), counts_of(other, None if is_nameless else "bb")]
    write(builds, path)
    source = open_source(path)
    assert isinstance(source, BuildSource)
    found = [content(counts) for counts, weight in source.builds() if weight == 1]
    assert found == [content(counts) for counts in builds if len(counts)]


def test_equal_counts_make_equal_bytes_and_name_where_they_are_from(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    write([ONE], paths[0], {"host": ["h2", "h1"]})
    write([ONE], paths[1], {"host": ["h1", "h2"]})
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert ParquetCounts(paths[0]).info.details == {"build-id": "aa", "host": "h1, h2"}


def test_duckdb_reads_rows_sorted_and_adds_them_up(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    write([ONE, OTHER, NAMELESS], tmp_path / "x.parquet")
    query = duckdb.sql(f"SELECT * FROM '{tmp_path}/x.parquet'")
    assert dict(zip(query.columns, map(str, query.types), strict=True)) == {
        "build_id": "VARCHAR", "from": "UBIGINT", "to": "UBIGINT", "end": "UBIGINT",
        "known": "UTINYINT", "count": "UBIGINT", "mispredicted": "UBIGINT",
        "prediction_unknown": "UBIGINT",
    }  # fmt: skip
    assert query.fetchall() == [
        ("aa", 1, 2, 3, WHOLE, 4, 2, 2),
        ("aa", 2**64 - 1, 0, 9, WHOLE, 5, 2, 2),
        ("bb", 1, 2, 3, WHOLE, 40, 20, 20),
        (None, 7, 8, 9, WHOLE, 1, 0, 0),
    ]
    sums = duckdb.sql(f"SELECT build_id, sum(count) FROM '{tmp_path}/x.parquet' GROUP BY ALL")
    assert dict(sums.fetchall()) == {"aa": 9, "bb": 40, None: 1}


def test_a_program_takes_the_counts_of_its_build(tmp_path: Path) -> None:
    write([ONE, OTHER, NAMELESS], tmp_path / "x")
    source = ParquetCounts(tmp_path / "x")
    for counts in (ONE, OTHER, NAMELESS):
        assert content(source.counts(layout(counts.build_id))) == content(counts)
    with pytest.raises(InputError, match="of aa, bb, none, but /bin/x is cc"):
        source.counts(layout("cc"))
    write([NAMELESS], tmp_path / "x")
    assert ParquetCounts(tmp_path / "x").counts(layout("cc")).build_id == "cc"


def test_a_table_of_another_tool_may_have_weights(table) -> None:
    source = ParquetCounts(table(build_id=["aa", "aa"], weight=["1/2", "3"]))
    assert [(c.count.tolist(), weight) for c, weight in source.builds()] == [
        ([10], Fraction(1, 2)),
        ([20], 3),
    ]
    counts = source.counts(layout("aa"))
    assert counts.count.tolist() == [5, 60]
    assert (counts.prediction_unknown == 0).all()


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"end": None}, "no column end"),
        ({"from": [1, None]}, "from holds nulls"),
        ({"from": [1, -1]}, "from is int64, not uint64"),
        ({"count": [1.5, 2.0]}, "count is double"),
        ({"known": [1, 999]}, "known is too large"),
        ({"build_id": [1, 2]}, "build_id is int64, not text"),
        ({"build_id": [b"1", b"2"]}, "build_id is binary, not text"),
        ({"build_id": [["aa"], ["bb"]]}, "build_id is list"),
        ({"weight": ["1", "0"]}, "not above 0"),
        ({"weight": ["1", "1e99"]}, "no weight"),
        ({"count": [2**62, 2**62]}, "2\\*\\*63"),
        ({"metadata": {"lbr2pgo": "{}"}}, "header can't be read"),
        ({"metadata": {"lbr2pgo": header(weight="x")}}, "header can't"),
        ({"metadata": {"lbr2pgo": header(version=7)}}, "version 7"),
        (
            {"metadata": {"lbr2pgo": header(tallies={"": {"branches_in_image": 1}})}},
            "not those of its counts",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(table, columns: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says) as raised:
        ParquetCounts(table(**columns))
    assert raised.value.where
    assert raised.value.cure


def test_two_columns_of_one_name_are_refused(table) -> None:
    path = table()
    made = parquet.read_table(path)
    parquet.write_table(made.append_column("from", made.column("from")), path)
    with pytest.raises(InputError, match="two of its columns have one name"):
        ParquetCounts(path)


def test_damage_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write([ONE, OTHER], path)
    whole = path.read_bytes()
    generator = np.random.default_rng(1)
    refused = 0
    for _ in range(300):
        place = int(generator.integers(4, len(whole)))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        try:
            tuple(ParquetCounts(path).builds())
        except InputError:
            refused += 1
    assert refused > 100
    path.write_bytes(whole[:-20])
    with pytest.raises(InputError, match="can't be used"):
        ParquetCounts(path)


def test_rows_that_the_file_can_not_hold_are_not_read(tmp_path: Path) -> None:
    size = 1 << 20
    same = {name: np.zeros(size, np.int64) for name in ("from", "to", "end", "known", "count")}
    parquet.write_table(arrow.table({**same, "mispredicted": same["count"]}), tmp_path / "x")
    with pytest.raises(InputError, match="1,048,576 rows can't be in it"):
        ParquetCounts(tmp_path / "x")


def test_without_pyarrow_the_extra_is_named(tmp_path: Path) -> None:
    write([ONE], tmp_path / "x.parquet")
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from lbr2pgo.cli import main\n"
        "sys.exit(main(['dump', 'counts', 'x.parquet', '--binary', '/bin/sh']))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert "needs the package pyarrow" in done.stderr
    assert "pip install 'lbr2pgo[parquet]'" in done.stderr
