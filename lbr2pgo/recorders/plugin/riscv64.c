// RISC-V. Opcodes: RISC-V Instruction Set Manual, volume I, "RV32/64G Instruction Set Listings" and
// "RVC Instruction Set Listings".

#include <elf.h>

#include "architecture.h"

static int is_link(unsigned reg) { return reg == 1 || reg == 5; }

// Bits of a word, `width` of them from `from` on, moved to where `to` says.
static uint64_t moved(uint32_t word, unsigned from, unsigned width, unsigned to) {
    return (uint64_t)(word >> from & ((1u << width) - 1)) << to;
}

static struct decoded direct(enum kind kind, uint64_t address, uint64_t distance, unsigned bits) {
    return (struct decoded){kind, address + (uint64_t)sign_extend(distance, bits)};
}

static struct decoded decode_compressed(uint64_t address, uint32_t word) {
    uint64_t distance;
    switch (word & 0xe003) {
    case 0xa001:  // c.j
        distance = moved(word, 12, 1, 11) | moved(word, 11, 1, 4) | moved(word, 9, 2, 8) |
                   moved(word, 8, 1, 10) | moved(word, 7, 1, 6) | moved(word, 6, 1, 7) |
                   moved(word, 3, 3, 1) | moved(word, 2, 1, 5);
        return direct(KIND_UNCOND, address, distance, 12);
    case 0xc001: case 0xe001:  // c.beqz, c.bnez
        distance = moved(word, 12, 1, 8) | moved(word, 10, 2, 3) | moved(word, 5, 2, 6) |
                   moved(word, 3, 2, 1) | moved(word, 2, 1, 5);
        return direct(KIND_COND, address, distance, 9);
    }
    enum kind kind = KIND_OTHER;
    if (word == 0 || word == 0x9002)  // c.unimp, c.ebreak
        kind = KIND_TRAP;
    else if ((word & 0xf07f) == 0x8002)  // c.jr
        kind = is_link(word >> 7 & 31) ? KIND_RET : KIND_IND;
    else if ((word & 0xf07f) == 0x9002)  // c.jalr
        kind = KIND_IND_CALL;
    return (struct decoded){kind, 0};
}

// ecall, ebreak, and returns from traps; all else reads and writes status registers.
static enum kind kind_of_system(uint32_t word) {
    switch (word) {
    case 0x00000073: return KIND_SYSCALL;
    case 0x00100073: case 0xc0001073: return KIND_TRAP;
    case 0x10200073: case 0x30200073: case 0x70200073: case 0x7b200073: return KIND_RET;
    default: return KIND_OTHER;
    }
}

static struct decoded decode(uint64_t address, const uint8_t *bytes, size_t size) {
    struct decoded none = {KIND_OTHER, 0};
    if (size == 2)
        return decode_compressed(address, (uint32_t)little_endian(bytes, 2) & 0xffff);
    if (size != 4)
        return none;
    uint32_t word = (uint32_t)little_endian(bytes, 4);
    unsigned to = word >> 7 & 31, by = word >> 15 & 31;
    switch (word & 0x7f) {
    case 0x63:
        return direct(KIND_COND, address,
                      moved(word, 31, 1, 12) | moved(word, 25, 6, 5) | moved(word, 8, 4, 1) |
                          moved(word, 7, 1, 11), 13);
    case 0x6f:
        return direct(is_link(to) ? KIND_CALL : KIND_UNCOND, address,
                      moved(word, 31, 1, 20) | moved(word, 21, 10, 1) | moved(word, 20, 1, 11) |
                          moved(word, 12, 8, 12), 21);
    case 0x67:
        none.kind = is_link(to) ? KIND_IND_CALL : is_link(by) ? KIND_RET : KIND_IND;
        return none;
    case 0x73:
        none.kind = kind_of_system(word);
        return none;
    default:
        return none;
    }
}

// QEMU: target/riscv/cpu.h, gpr[]; Linux: arch/riscv/kernel/signal.c, struct rt_sigframe.
const struct architecture riscv64 = {
    .machine = EM_RISCV,
    .decode = decode,
    .numbers = GENERIC_NUMBERS,
    .stack_pointer = 2 * 8,
    .return_address = 1 * 8,
    .pushed_by_call = 0,
    .signal_stack_pointer = 320,
    .signal_instruction = 304,
};
