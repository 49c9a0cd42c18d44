from __future__ import annotations

from pathlib import Path

import pytest
from builders.recordings import PIE, RECORDING

import lbr2pgo
from lbr2pgo.support.errors import InputError

OLD = "main:9000:10\n 1: 9000 g:10\n_Z1fi:1000:5\n 1: 1000\n"
NEW = "main:2000:10\n 1: 2000 g:10\n_Z1fi:8000:5\n 1: 8000\n"


def written(folder: Path, **profiles: str) -> list[Path]:
    """Profiles by their names."""
    paths = [folder / name for name in profiles]
    for path, text in zip(paths, profiles.values(), strict=True):
        path.write_text(text)
    return paths


def test_functions_by_how_their_share_changed(tmp_path: Path) -> None:
    found = lbr2pgo.diff(*written(tmp_path, old=OLD, new=NEW))
    assert (
        repr(found) == "<ProfileDiff new: 2 functions with another share, 0 calls gained or lost>"
    )
    frame = found.functions.to_pandas()
    assert dict(zip(frame.function, frame.change.round(3), strict=True)) == {
        "main": -0.7, "_Z1fi": 0.7,
    }  # fmt: skip
    assert found.report.summary == ("The most changed _Z1fi, from 10.0% to 80.0% of the profile.",)
    assert "<td>-70.0%</td>" in found._repr_html_()
    assert len(lbr2pgo.diff(found.old, found.new, top=1).functions) == 1


def test_chance_is_told_from_no_change(tmp_path: Path) -> None:
    nearly = OLD.replace("1000", "1010")
    old, new = written(tmp_path, old=OLD, new=nearly)
    assert lbr2pgo.diff(old, old).verdict == "nothing changed"
    assert lbr2pgo.diff(old, new).verdict == "nothing changed by more than chance"
    assert set(lbr2pgo.diff(old, new, all=True).functions.column("sure")) == {"no"}


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (
            "0 [unknown] 0 1 main 0 0 1\n",
            "kind (fdata) than {old} (sample profiles by source line)",
        ),
        (f"{NEW} !CFGChecksum: 7\n", "(sample profiles by pseudo probe) than"),
        ("[main]:1:1\n 1: 1\n", "(sample profiles by source line and calling context) than"),
        ("no profile\n", "{new}: is no written profile"),
        ("", "{new}: is empty"),
    ],
    ids=["fdata", "probes", "contexts", "none", "empty"],
)
def test_what_does_not_compare_is_said_in_a_sentence(tmp_path: Path, new: str, said: str) -> None:
    paths = written(tmp_path, old=OLD, new=new)
    with pytest.raises(InputError) as error:
        lbr2pgo.diff(*paths)
    assert said.format(old=paths[0], new=paths[1]) in error.value.headline


def test_lists_of_functions_have_nothing_to_compare(tmp_path: Path) -> None:
    order = tmp_path / "order"
    lbr2pgo.convert(RECORDING, PIE, symbol_order=order)
    with pytest.raises(InputError, match="tells of no counts"):
        lbr2pgo.diff(order, order)
