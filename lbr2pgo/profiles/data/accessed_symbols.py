"""The symbols of data, how often each was accessed, and by which names tools can know them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.model.waterfall import Step
from lbr2pgo.profiles.propeller.format import UNNAMED
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import OutputError

if TYPE_CHECKING:
    from lbr2pgo.support.arrays import I64, U64

ACCESSED = Step("data_accessed", "symbols of data that were accessed", "symbols", None)
NAMED = Step("data_named", "symbols of data that tools can name", "symbols", ACCESSED.key, UNNAMED)
LIMITS = ("needs a section for each object (-fdata-sections)", "leaves out those that share a name")


@dataclass(frozen=True, slots=True)
class AccessedSymbols:
    """Those with a name of their own; of length n, by address."""

    names: tuple[str, ...]
    count: U64
    """Samples of accesses; 0 for those without any."""
    size: U64
    """Bytes."""
    tallies: Mapping[str, int]

    def densest(self) -> I64:
        """Rows (k,) of those that were accessed, those with most accesses a byte first."""
        import numpy as np

        order = np.argsort(-(self.count / self.size), kind="stable")
        return order[: np.count_nonzero(self.count)]


def accessed_symbols(work: Work) -> AccessedSymbols:
    """To be had by `Work.once`.

    Raises OutputError where nothing says which data was accessed, and EmptyProfileError where none
    of it has a name.
    """
    import numpy as np

    from lbr2pgo.evidence.data_accesses import DATA_ACCESSES
    from lbr2pgo.program.elf.data_symbols import data_symbols
    from lbr2pgo.support.sums import sums_at

    found = work.told(DATA_ACCESSES)
    if found is None or not (len(found) or found.elsewhere):
        raise OutputError(
            "the recording does not say which data was accessed",
            cure="Record it: lbr2pgo record --data -- CMD, or perf mem record -b on hardware.",
        )
    symbols = work.program.symbols
    objects = data_symbols(symbols)
    at = objects.containing(found.address)
    rows = np.flatnonzero(at >= 0)
    count = sums_at(at[rows], found.count[rows], len(objects))
    names = [symbols.names[row] for row in objects.row.tolist()]
    why = _unnamed(names)
    tallies = Counter(why[row] for row in np.flatnonzero(count).tolist())
    named = [row for row, reason in enumerate(why) if reason is None]
    told = {ACCESSED.key: tallies.total(), NAMED.key: tallies[None]}
    told |= {f"{NAMED.key}/{reason}": number for reason, number in tallies.items() if reason}
    if not tallies[None]:
        raise EmptyProfileError(told, what="no data that has a name of its own was accessed")
    return AccessedSymbols(
        tuple(names[row] for row in named), count[named], (objects.end - objects.start)[named], told
    )


def _unnamed(names: Sequence[str]) -> list[str | None]:
    """Why a tool can't know data by these names (n,); None where it can.

    >>> _unnamed(["a", "b", "a", "a b"])
    ['two_of_one_name', None, 'two_of_one_name', 'odd_name']
    """
    from lbr2pgo.profiles.linker.linker_names import is_plain

    many = Counter(names)
    return [
        None if is_plain(name) and many[name] == 1
        else "two_of_one_name" if is_plain(name) else "odd_name"
        for name in names
    ]  # fmt: skip
