from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lbr2pgo.support.errors import MissingToolError
from lbr2pgo.support.extras import extra


def test_a_package_that_is_there_is_handed_on() -> None:
    assert extra("json", "any", "this") is json


def test_one_that_is_not_names_what_installs_it() -> None:
    with pytest.raises(MissingToolError) as caught:
        extra("no_such_package.inner", "fleet", "merging on a cluster")
    assert str(caught.value) == (
        "merging on a cluster needs the package no_such_package, which is not installed\n"
        "Install it: pip install 'lbr2pgo[fleet]'."
    )


WITHOUT = (
    "import sys; from lbr2pgo.cli import main; "
    "sys.modules[sys.argv[1]] = None; "  # as Python marks what can't be imported
    "sys.exit(main(sys.argv[2:]))"
)
NOT_THERE = "/no/such/recording"
"""Complained of as soon as anything is read."""


@pytest.mark.parametrize(
    ("package", "words", "installs"),
    [
        ("pyarrow", ("fleet", NOT_THERE, "-o", "all.parquet"), "lbr2pgo[parquet]"),
        ("distributed", ("fleet", NOT_THERE, "-o", "all.parquet", "--workers", "1"),
         "lbr2pgo[fleet]"),
        ("fsspec", ("fleet", "memory://bucket", "-o", "all.parquet"), "lbr2pgo[fleet]"),
        ("s3fs", ("fleet", "s3://bucket", "-o", "all.parquet"), "fsspec[s3]"),
        ("pyarrow", ("merge", NOT_THERE, "-o", "all.parquet"), "lbr2pgo[parquet]"),
        ("pyarrow", ("convert", NOT_THERE, "--counts", "all.parquet"), "lbr2pgo[parquet]"),
        ("pyarrow", ("convert", NOT_THERE, "--counts", "x", "--counts-format", "parquet"),
         "lbr2pgo[parquet]"),
        ("pyarrow", ("report", NOT_THERE, "--format", "parquet"), "lbr2pgo[parquet]"),
    ],
)  # fmt: skip
def test_missing_packages_are_asked_for_before_any_work(
    package: str, words: tuple[str, ...], installs: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", WITHOUT, package, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    what, cure = done.stderr.splitlines()
    assert done.returncode == 2
    assert package in what
    assert cure == f"Install it: pip install '{installs}'."
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
