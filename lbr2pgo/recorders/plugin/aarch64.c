// AArch64. Opcodes: Arm ARM C4.1 "A64 instruction set encoding", section "Branches, exception
// generating and system instructions".

#include <elf.h>

#include "architecture.h"

// BR, BLR, RET and their authenticating forms: opc is bits 24:21.
static enum kind kind_of_register_branch(uint32_t word) {
    switch (word >> 21 & 15) {
    case 0: case 8: return KIND_IND;
    case 1: case 9: return KIND_IND_CALL;
    case 2: return KIND_RET;
    default: return KIND_TRAP;
    }
}

static struct decoded decode(uint64_t address, const uint8_t *bytes, size_t size) {
    struct decoded result = {KIND_OTHER, 0};
    if (size != 4)
        return result;
    uint32_t word = (uint32_t)little_endian(bytes, 4);
    unsigned low = 0, bits = 0;  // of the displacement in instructions
    if ((word & 0x7c000000) == 0x14000000)  // B, BL
        result.kind = word >> 31 ? KIND_CALL : KIND_UNCOND, low = 0, bits = 26;
    else if ((word & 0xff000000) == 0x54000000)  // B.cond, BC.cond
        result.kind = KIND_COND, low = 5, bits = 19;
    else if ((word & 0x7e000000) == 0x34000000)  // CBZ, CBNZ
        result.kind = KIND_COND, low = 5, bits = 19;
    else if ((word & 0x7e000000) == 0x36000000)  // TBZ, TBNZ
        result.kind = KIND_COND, low = 5, bits = 14;
    else if ((word & 0x7e000000) == 0x74000000)  // CB<cc>, register and immediate
        result.kind = KIND_COND, low = 5, bits = 9;
    else if ((word & 0xfe000000) == 0xd6000000)
        result.kind = kind_of_register_branch(word);
    else if ((word & 0xff80001f) == 0x5500001f)  // RETAASPPC, RETABSPPC
        result.kind = KIND_RET;
    else if ((word & 0xffe0001f) == 0xd4000001)
        result.kind = KIND_SYSCALL;
    else if ((word & 0xff000000) == 0xd4000000 || (word & 0xffff0000) == 0)
        result.kind = KIND_TRAP;
    if (bits)
        result.target = address + 4 * (uint64_t)sign_extend(word >> low, bits);
    return result;
}

// QEMU: target/arm/cpu.h, regs[16] of 32 bits, then xregs[]; Linux: arch/arm64/kernel/signal.c.
const struct architecture aarch64 = {
    .machine = EM_AARCH64,
    .decode = decode,
    .numbers = GENERIC_NUMBERS,
    .stack_pointer = 64 + 31 * 8,
    .return_address = 64 + 30 * 8,
    .pushed_by_call = 0,
    .signal_stack_pointer = 560,
    .signal_instruction = 568,
};
