from __future__ import annotations

from pathlib import Path

import pytest

from lbr2pgo.profiles.llvm import extbinary, text
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.llvm.written import TEXT as READER

TEXT = """\
main:20:1
 1: 5 inner:2
 2.3: inner:7
  1: 4
  2: deep:3
   1: 3
inner:6:2
 1: 6
"""


@pytest.fixture
def profile() -> SampleProfile:
    return text.parse(TEXT.encode().splitlines(), "x.prof")


def test_lines_are_text_whatever_form_was_read(profile: SampleProfile, tmp_path: Path) -> None:
    assert list(READER.lines(profile)) == TEXT.splitlines()
    extbinary.write(profile, tmp_path / "x.prof")
    assert list(READER.lines(extbinary.read(tmp_path / "x.prof"))) == TEXT.splitlines()
    assert list(READER.lines(SampleProfile())) == []


def test_a_function_is_shown_with_where_it_is_inlined(profile: SampleProfile) -> None:
    found = READER.of_function(profile, "inner")
    assert found is not None
    assert list(found) == [
        "inner:6:2", " 1: 6", "# inlined, 7 samples: main:2.3 @ inner",
    ]  # fmt: skip


def test_one_that_is_only_inlined_is_a_comment(profile: SampleProfile) -> None:
    found = READER.of_function(profile, "deep")
    assert found is not None
    assert list(found) == ["# inlined, 3 samples: main:2.3 @ inner:2 @ deep"]
    assert READER.of_function(profile, "nothing") is None


def test_all_functions_are_told(profile: SampleProfile) -> None:
    assert READER.functions(profile) == {"main", "inner", "deep"}
