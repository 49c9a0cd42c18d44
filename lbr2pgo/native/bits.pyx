"""Bits that loops and tables share, which stand in bits.pxd, and names of their values."""

BRANCH_TYPES = (
    "UNKNOWN", "COND", "UNCOND", "IND", "CALL", "IND_CALL", "RET", "SYSCALL", "SYSRET",
    "COND_CALL", "COND_RET", "ERET", "IRQ", "SERROR", "NO_TX", "EXTEND_ABI",
)
SPEC_OUTCOMES = ("NA", "SPEC_WRONG_PATH", "NON_SPEC_CORRECT_PATH", "SPEC_CORRECT_PATH")
