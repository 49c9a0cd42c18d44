from lbr2pgo.support.arrays import U8, U64

PIECE_COLUMNS: int
ENTRY_COLUMNS: int
FINE: int
CUT: int
OUT_OF_RANGE: int

def read_translation(data: U8) -> tuple[U64, U64, tuple[int, int]]:
    """Pieces (p, 2) and entries (e, 4), and how the reading ended.

    `data` is what the note holds behind its name. A piece of a function has its address and the
    number of the piece that its function begins with. An entry has its piece's number, its offset
    there, its offset in the function as it was, and whether it is a branch. Last come one of FINE,
    CUT and OUT_OF_RANGE (numbers that no function can have), and the offset where reading ended;
    then tables hold what was read until there.

    LLVM 22: bolt/lib/Profile/BoltAddressTranslation.cpp, parseMaps.
    """
