"""Places as LLVM names them."""

from __future__ import annotations

import numpy as np
from builders.frames import places_with

from lbr2pgo.profiles.llvm.source_places import inline_contexts, places_of


def test_what_is_in_a_function_without_a_name_is_at_the_call_of_the_outermost_such() -> None:
    f, nameless, g = ("f", 11, 10, 4), ("", 25, 20, 0), ("g", 31, 30, 0)
    rows = [[f, nameless, g, nameless, g], [f, g, nameless], [f, g], [nameless, g], []]
    places = places_of(places_with(rows), is_fs=True)
    contexts, innermost = inline_contexts(places)
    names = [places.names[i] for i in contexts.function.tolist()]
    assert names == ["f", "g"]
    assert innermost.tolist() == [0, 1, 1, -1, -1]
    line, discriminator = places.location(np.arange(3))
    assert list(zip(line.tolist(), discriminator.tolist(), strict=True)) == [(1, 4), (1, 0), (1, 0)]
