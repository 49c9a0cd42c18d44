"""Bits that loops and tables share, which stand in bits.pxd, and names of their values."""

BRANCH_TYPES = (
    "UNKNOWN", "COND", "UNCOND", "IND", "CALL", "IND_CALL", "RET", "SYSCALL", "SYSRET",
    "COND_CALL", "COND_RET", "ERET", "IRQ", "SERROR", "NO_TX", "EXTEND_ABI",
)
# Of EXTEND_ABI, PERF_BR_NEW_*: those of architectures are Arm's (perf: tools/perf/util/branch.c); for
# the last two perf has no number.
NEW_BRANCH_TYPES = (
    "FAULT_ALGN", "FAULT_DATA", "FAULT_INST", "ARM64_FIQ", "ARM64_DEBUG_HALT", "ARM64_DEBUG_EXIT",
    "ARM64_DEBUG_INST", "ARM64_DEBUG_DATA", "ARM64_TRAP", "ARM64_TRAP_EL3",
)
SPEC_OUTCOMES = ("NA", "SPEC_WRONG_PATH", "NON_SPEC_CORRECT_PATH", "SPEC_CORRECT_PATH")
