// x86-64. Opcodes: Intel SDM vol. 2, appendix A.

#include <elf.h>

#include "architecture.h"

static int is_prefix(uint8_t byte) {
    switch (byte) {
    case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65:
    case 0x66: case 0x67: case 0xf0: case 0xf2: case 0xf3:
        return 1;
    default:
        return 0;
    }
}

static int is_string_operation(uint8_t opcode) {
    return (opcode >= 0x6c && opcode <= 0x6f) || (opcode >= 0xa4 && opcode <= 0xa7) ||
           (opcode >= 0xaa && opcode <= 0xaf);
}

static enum kind kind_of_two_bytes(uint8_t opcode) {
    switch (opcode) {
    case 0x05: case 0x34: return KIND_SYSCALL;
    case 0x07: case 0x35: return KIND_RET;
    case 0x0b: case 0xb9: case 0xff: return KIND_TRAP;
    default: return (opcode & 0xf0) == 0x80 ? KIND_COND : KIND_OTHER;
    }
}

static enum kind kind_of_group_5(uint8_t modrm) {
    switch (modrm >> 3 & 7) {
    case 2: case 3: return KIND_IND_CALL;
    case 4: case 5: return KIND_IND;
    default: return KIND_OTHER;
    }
}

// `next` holds the bytes after the opcode, at least one.
static enum kind kind_of(uint8_t opcode, const uint8_t *next) {
    switch (opcode) {
    case 0x0f: return kind_of_two_bytes(next[0]);
    case 0xc2: case 0xc3: case 0xca: case 0xcb: case 0xcf: return KIND_RET;
    case 0xc7: return next[0] == 0xf8 ? KIND_COND : KIND_OTHER;  // xbegin
    case 0xcc: case 0xf1: case 0xf4: return KIND_TRAP;
    case 0xcd: return KIND_SYSCALL;
    case 0xe0: case 0xe1: case 0xe2: case 0xe3: return KIND_COND;
    case 0xe8: return KIND_CALL;
    case 0xe9: case 0xeb: return KIND_UNCOND;
    case 0xff: return kind_of_group_5(next[0]);
    default: return (opcode & 0xf0) == 0x70 ? KIND_COND : KIND_OTHER;
    }
}

static int displacement_is_byte(uint8_t opcode) {
    return opcode == 0xeb || (opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0;
}

static struct decoded decode(uint64_t address, const uint8_t *bytes, size_t size) {
    struct decoded result = {KIND_OTHER, 0};
    size_t at = 0;
    int repeated = 0;
    while (at + 1 < size && is_prefix(bytes[at])) {
        repeated |= (bytes[at] & 0xfe) == 0xf2;
        at++;
    }
    if (at + 1 < size && (bytes[at] & 0xf0) == 0x40)
        at++;
    if (repeated && is_string_operation(bytes[at])) {
        result.kind = KIND_REPEAT;
        return result;
    }
    static const uint8_t none[1] = {0};
    result.kind = kind_of(bytes[at], at + 1 < size ? bytes + at + 1 : none);
    int direct = result.kind == KIND_COND || result.kind == KIND_UNCOND || result.kind == KIND_CALL;
    size_t width = displacement_is_byte(bytes[at]) ? 1 : 4;
    if (direct && size >= at + 1 + width)
        result.target = address + size + (uint64_t)little_endian(bytes + size - width, width);
    return result;
}

// QEMU: target/i386/cpu.h, regs[]; Linux: arch/x86/include/asm/sigframe.h and
// entry/syscalls/syscall_64.tbl.
const struct architecture x86_64 = {
    .machine = EM_X86_64,
    .decode = decode,
    .numbers = {
        .mmap = 9, .munmap = 11, .mprotect = 10, .pkey_mprotect = 329, .mremap = 25,
        .rt_sigaction = 13, .rt_sigreturn = 15,
        .clone = 56, .execve = 59, .execveat = 322, .exit = 60, .exit_group = 231, .prctl = 157,
        .close = 3, .close_range = 436, .dup2 = 33, .dup3 = 292,
        .clock_gettime = 228, .gettimeofday = 96, .time = 201, .getpid = 39, .gettid = 186,
        .getrandom = 318, .socket = 41,
        .nanosleep = 35, .clock_nanosleep = 230, .poll = 7, .ppoll = 271, .epoll_wait = 232,
        .epoll_pwait = 281,
    },
    .stack_pointer = 4 * 8,
    .return_address = ON_STACK,
    .pushed_by_call = 8,
    .signal_stack_pointer = 168,
    .signal_instruction = 176,
};
