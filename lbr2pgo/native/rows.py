"""Types of table rows whose fields loops name as attributes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def row_type(fields: Sequence[tuple[str, npt.DTypeLike]]) -> np.dtype[np.void]:
    """A structured type, of whose rows `row.field` can be said without Numba too.

    Numba takes it for any structured type; interpreted loops (NUMBA_DISABLE_JIT) need it. There,
    an attribute of all arrays (`size`, say) would hide a field of its name.
    """
    if taken := {name for name, _ in fields if hasattr(np.record, name)}:
        raise ValueError(f"rows have attributes of these names already: {sorted(taken)}")
    return np.dtype((np.record, list(fields)))
