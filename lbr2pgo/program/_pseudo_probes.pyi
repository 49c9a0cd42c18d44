from lbr2pgo.support.arrays import I32, I64, U8, U32, U64

DESCRIPTOR_COLUMNS: int
RECORD_COLUMNS: int

def read_descriptors(data: U8) -> tuple[U64, int]:
    """The descriptors of .pseudo_probe_desc, (n, DESCRIPTOR_COLUMNS), and how far they reach.

    Columns: GUID, checksum, where in the section the name starts and ends. What follows the last
    whole one, if anything does, is damaged.
    """

def survey_records(data: U8) -> tuple[U64, int]:
    """The records of .pseudo_probe, (n, RECORD_COLUMNS), and how far they reach.

    A record holds the probes of one function's code, and of what was inlined into it. Columns:
    where it starts in the section; GUID; GUID of the symbol at which its running address starts;
    that address, if no symbol is needed; whether none is; whether it is of neither encoding;
    functions in it; probes in it, without sentinels; distance from the start of its lowest and of
    its highest probe (negative ones wrap around); how deep functions nest in it, 0 without
    inlining. What follows the last whole record, if anything does, is damaged.
    """

def read_records(
    data: U8, offset: I64, start: U64, nodes: int, probes: int, depth: int
) -> tuple[tuple[U64, I32, U32], tuple[U64, I32, U32, U8, U8, U32]]:
    """Functions and probes of records that `survey_records` found, in the order of the section.

    offset, start (k,): where records start in the section, and the running addresses there.
    nodes, probes, depth: sums of theirs, and the largest depth; IndexError if that is not so.

    Of functions: GUID, number of the one that each was inlined into (-1 if into none), probe of
    the call there. Of probes, without sentinels: address, number of the function, index, type,
    attributes, discriminator.
    """
