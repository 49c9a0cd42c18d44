// What an instruction does to the program counter, from its bytes: x86-64 and AArch64.
//
// Opcodes: Intel SDM vol. 2, appendix A; Arm ARM C4.1 "A64 instruction set encoding", section
// "Branches, exception generating and system instructions".

#ifndef LBR_DECODE_H
#define LBR_DECODE_H

#include <stddef.h>
#include <stdint.h>

// Kinds that Linux also knows have Linux's numbers (PERF_BR_*, include/uapi/linux/perf_event.h).
enum kind {
    KIND_OTHER = 0,
    KIND_COND = 1,
    KIND_UNCOND = 2,
    KIND_IND = 3,
    KIND_CALL = 4,
    KIND_IND_CALL = 5,
    KIND_RET = 6,
    KIND_SYSCALL = 7,
    KIND_ERET = 11,
    KIND_REPEAT = 16,  // a repeated string instruction: QEMU runs it as a loop over itself
    KIND_TRAP = 17,
};

struct decoded {
    enum kind kind;
    uint64_t target;  // of direct branches
};

static inline int64_t sign_extend(uint64_t value, unsigned bits) {
    return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

static inline int64_t little_endian(const uint8_t *bytes, size_t size) {
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;)
        value = value << 8 | bytes[i];
    return sign_extend(value, (unsigned)(8 * size));
}

static inline int is_x86_prefix(uint8_t byte) {
    switch (byte) {
    case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65:
    case 0x66: case 0x67: case 0xf0: case 0xf2: case 0xf3:
        return 1;
    default:
        return 0;
    }
}

static inline int is_x86_string_operation(uint8_t opcode) {
    return (opcode >= 0x6c && opcode <= 0x6f) || (opcode >= 0xa4 && opcode <= 0xa7) ||
           (opcode >= 0xaa && opcode <= 0xaf);
}

static inline enum kind x86_kind_two_bytes(uint8_t opcode) {
    switch (opcode) {
    case 0x05: case 0x34: return KIND_SYSCALL;
    case 0x07: case 0x35: return KIND_RET;
    case 0x0b: case 0xb9: case 0xff: return KIND_TRAP;
    default: return (opcode & 0xf0) == 0x80 ? KIND_COND : KIND_OTHER;
    }
}

static inline enum kind x86_kind_group_5(uint8_t modrm) {
    switch (modrm >> 3 & 7) {
    case 2: case 3: return KIND_IND_CALL;
    case 4: case 5: return KIND_IND;
    default: return KIND_OTHER;
    }
}

// `next` holds the bytes after the opcode, at least one.
static inline enum kind x86_kind(uint8_t opcode, const uint8_t *next) {
    switch (opcode) {
    case 0x0f: return x86_kind_two_bytes(next[0]);
    case 0xc2: case 0xc3: case 0xca: case 0xcb: case 0xcf: return KIND_RET;
    case 0xc7: return next[0] == 0xf8 ? KIND_COND : KIND_OTHER;  // xbegin
    case 0xcc: case 0xf1: case 0xf4: return KIND_TRAP;
    case 0xcd: return KIND_SYSCALL;
    case 0xe0: case 0xe1: case 0xe2: case 0xe3: return KIND_COND;
    case 0xe8: return KIND_CALL;
    case 0xe9: case 0xeb: return KIND_UNCOND;
    case 0xff: return x86_kind_group_5(next[0]);
    default: return (opcode & 0xf0) == 0x70 ? KIND_COND : KIND_OTHER;
    }
}

static inline int x86_displacement_is_byte(uint8_t opcode) {
    return opcode == 0xeb || (opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0;
}

static inline struct decoded decode_x86(uint64_t address, const uint8_t *bytes, size_t size) {
    struct decoded result = {KIND_OTHER, 0};
    size_t at = 0;
    int repeated = 0;
    while (at + 1 < size && is_x86_prefix(bytes[at])) {
        repeated |= (bytes[at] & 0xfe) == 0xf2;
        at++;
    }
    if (at + 1 < size && (bytes[at] & 0xf0) == 0x40)
        at++;
    if (repeated && is_x86_string_operation(bytes[at])) {
        result.kind = KIND_REPEAT;
        return result;
    }
    static const uint8_t none[1] = {0};
    result.kind = x86_kind(bytes[at], at + 1 < size ? bytes + at + 1 : none);
    int direct = result.kind == KIND_COND || result.kind == KIND_UNCOND || result.kind == KIND_CALL;
    size_t width = x86_displacement_is_byte(bytes[at]) ? 1 : 4;
    if (direct && size >= at + 1 + width)
        result.target = address + size + (uint64_t)little_endian(bytes + size - width, width);
    return result;
}

// BR, BLR, RET and their authenticating forms: opc is bits 24:21.
static inline enum kind aarch64_kind_of_register_branch(uint32_t word) {
    switch (word >> 21 & 15) {
    case 0: case 8: return KIND_IND;
    case 1: case 9: return KIND_IND_CALL;
    case 2: return KIND_RET;
    default: return KIND_TRAP;
    }
}

static inline struct decoded decode_aarch64(uint64_t address, const uint8_t *bytes, size_t size) {
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
        result.kind = aarch64_kind_of_register_branch(word);
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

#endif
