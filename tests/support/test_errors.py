from __future__ import annotations

import pytest

from lbr2pgo.support.errors import InputError, Lbr2pgoError, MissingToolError, OutputError


@pytest.mark.parametrize(
    ("where", "cure", "text"),
    [
        (None, None, "is damaged"),
        ("perf.data@0x1f0", None, "perf.data@0x1f0: is damaged"),
        (None, "Record again.", "is damaged\nRecord again."),
        ("a.txt:12", "Record again.", "a.txt:12: is damaged\nRecord again."),
    ],
)
def test_an_error_says_where_what_and_then_what_to_do(
    where: str | None, cure: str | None, text: str
) -> None:
    error = InputError("is damaged", where=where, cure=cure)
    assert str(error) == text
    assert error.headline == text.split("\n")[0]
    assert error.what == "is damaged"


@pytest.mark.parametrize("kind", [InputError, OutputError, MissingToolError])
def test_all_that_a_user_can_mend_end_with_2(kind: type[Lbr2pgoError]) -> None:
    with pytest.raises(Lbr2pgoError) as caught:
        raise kind("something")
    assert caught.value.exit_code == 2
