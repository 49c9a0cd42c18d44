# Said of an entry: `model.branch_stacks` hands these on.
MISPREDICTED: int
PREDICTED: int
IN_TRANSACTION: int
ABORT: int
CYCLES_SHIFT: int
CYCLES_MASK: int
TYPE_SHIFT: int
TYPE_MASK: int
SPEC_SHIFT: int
SPEC_MASK: int
NEW_TYPE_SHIFT: int
NEW_TYPE_MASK: int
PRIV_SHIFT: int
PRIV_MASK: int
NOT_TAKEN_SHIFT: int
CYCLES_HIGH_SHIFT: int
ZERO_CYCLES: int
MISSING: int
SATURATED: int
BRANCH_TYPES: tuple[str, ...]
NEW_BRANCH_TYPES: tuple[str, ...]
FIRST_EXCEPTION: int
SPEC_OUTCOMES: tuple[str, ...]
SPEC_WRONG_PATH: int

# Said of a trace: `model.branch_counts` hands these on.
FROM: int
TO: int
END: int
BRANCH: int
RETURN: int
OUTSIDE: int
