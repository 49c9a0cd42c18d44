"""Notes that question the results."""

from __future__ import annotations

import pickle

from lbr2pgo.model.doubts import Doubt, parted, told_of


def test_doubts_are_told_from_other_notes() -> None:
    cut, assumed = Doubt("cut off"), "the program is a.out"
    assert parted([assumed, told_of("a.data", cut)]) == (["a.data: cut off"], [assumed])
    assert told_of("", cut) is cut


def test_a_doubt_stays_one_between_processes() -> None:
    assert parted([pickle.loads(pickle.dumps(Doubt("cut off")))]) == (["cut off"], [])
