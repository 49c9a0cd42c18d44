from __future__ import annotations

from pathlib import Path

import pytest

from lbr2pgo.errors import InputError
from lbr2pgo.inputs import open_inputs
from lbr2pgo.program.image import Image

TESTBINS = Path(__file__).parents[1] / "testbins"
BINARY = TESTBINS / "x86-64/interp.pie"
RECORDING = TESTBINS / "recordings/x86-64-interp.pie.perf.data"


def test_profiles_come_in_their_order() -> None:
    other = TESTBINS / "recordings/x86-64-interp.static.perf.data"
    program, sources = open_inputs([RECORDING, other], Image.opening(BINARY))
    assert program.image.path == str(BINARY)
    assert [source.info.path for source in sources] == [str(RECORDING), str(other)]


@pytest.mark.parametrize("bad", ["profile", "binary"])
def test_what_can_not_be_read_is_named(bad: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("no such thing")
    profile, binary = (wrong, BINARY) if bad == "profile" else (RECORDING, wrong)
    with pytest.raises(InputError) as raised:
        open_inputs([profile], Image.opening(binary))
    assert raised.value.where == str(wrong)
