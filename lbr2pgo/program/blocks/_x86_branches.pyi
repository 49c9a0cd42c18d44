from lbr2pgo.support.arrays import U8, U64

def address_filter(addresses: U64) -> U8:
    """Bits that say of any address whether it may be one of these (n,): a Bloom filter.

    One in sixteen of all others may be, too.
    """

def find_branches(code: U8, at: int, address: int, wanted: U8, found: U64) -> tuple[int, int]:
    """Sources and targets of what looks like a direct branch of x86-64, at any byte of `code`.

    Looks from code[at] on, where `address` is that of code[0]; only for branches to addresses that
    pass the filter `wanted`. Fills found (k, 2) and stops where it is full or where the code ends:
    gives that place, and how many rows were filled.
    """
