// x86-64 corners: repeated string instructions, jumps to themselves and to the next instruction,
// loop and jrcxz, calls that are no calls, prefixed branches, and blocks longer than QEMU's.
#include <string.h>

#define N "1000"

static char buffer[1 << 16];

int main(void) {
    __asm__ volatile(
        "mov $" N ", %%r8d\n"
        "1: lea %0, %%rdi\n mov $65536, %%ecx\n xor %%eax, %%eax\n"
        ".globl repeated\n repeated: rep stosb\n"
        "dec %%r8d\n .globl after_repeated\n after_repeated: jnz 1b\n"
        "mov $" N ", %%ecx\n .globl to_itself\n to_itself: loop to_itself\n"
        "mov $" N ", %%r8d\n"
        "2: .globl to_next\n to_next: jmp 3f\n 3: dec %%r8d\n jnz 2b\n"
        "mov $" N ", %%r8d\n"
        "4: .globl call_next\n call_next: call 5f\n 5: pop %%rax\n dec %%r8d\n jnz 4b\n"
        "xor %%ecx, %%ecx\n .globl short_counter\n short_counter: jrcxz 6f\n ud2\n 6:\n"
        "mov $" N ", %%r8d\n"
        "7: .rept 2000\n nop\n .endr\n dec %%r8d\n .globl long_block\n long_block: jnz 7b\n"
        "mov $" N ", %%r8d\n jmp 9f\n"
        ".globl bnd_return\n 8: bnd_return: .byte 0xf3\n ret\n"
        "9: call 8b\n dec %%r8d\n jnz 9b\n"
        : : "m"(buffer[0]) : "rax", "rcx", "rdi", "r8", "cc", "memory");
    return buffer[123];
}
