from lbr2pgo.support.arrays import U8, U64

PIECE_COLUMNS: int
ENTRY_COLUMNS: int
ENTRANCE_COLUMNS: int
FINE: int
CUT: int
OUT_OF_RANGE: int

def read_translation(data: U8) -> tuple[U64, U64, U64, tuple[int, int]]:
    """Pieces (p, 4), entries (e, 5) and further entrances (k, 2), and how the reading ended.

    `data` is what the note holds behind its name. A piece of a function has its address, the
    number of the piece that its function begins with, and of such a one the function's hash and
    its number of blocks. An entry has its piece's number, its offset there, its offset in the
    function as it was, the number of its block doubled (1 for a branch), and the block's hash. An
    entrance has its piece's number and its offset in the function as it was. Last come one of
    FINE, CUT and OUT_OF_RANGE (numbers that no function can have), and the offset where reading
    ended; then tables hold what was read until there.

    LLVM 22: bolt/lib/Profile/BoltAddressTranslation.cpp, parseMaps.
    """
