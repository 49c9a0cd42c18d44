from lbr2pgo.support.arrays import I32, I64, U32, Bools, Records

def chain_offsets(leaves: I64, dies: Records, most: int) -> tuple[I64, int]:
    """Frames above and at each of (n,) leaf rows: (offsets (n + 1,), how many chains were cut).

    A chain ends at the first function that is not inlined, as LLVM's does, or after `most`. A leaf
    of -1 has no frame.
    """

def chains(leaves: I64, dies: Records, offsets: I64) -> I32:
    """Rows of each leaf's chain, outermost first: (m,), `offsets` being those of the chains."""

def scopes(leaves: I64, dies: Records, most: int) -> tuple[Bools, I32, I32, int]:
    """The functions around (n,) leaf rows, each once: chains as a forest.

    Which DIEs they are, and, by the number of each among these, its parent (-1 where a chain ends)
    and the function of each leaf (n,): -1 for a leaf of -1, and for one of which a chain would have
    more than `most` frames. Also how many such there are.
    """

def fill_frames(
    offsets: I64, die: I32, leaf: Records, described: Records
) -> tuple[U32, U32, U32, U32]:
    """File number, line, discriminator and line of declaration of each frame: (m,) each.

    Frames of address `i` are `offsets[i]:offsets[i + 1]`, outermost first; `die` (m,) gives rows of
    `described` (`DESCRIPTION`), -1 for a frame without function, of which an address has no other.
    The leaf is where `leaf` (n,) (`FOUND`) says, the others are at the call that was inlined there.
    """
