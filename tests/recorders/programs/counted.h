// Loops whose branches are known. In COUNTED_LOOP `NAME` is the conditional branch, taken COUNT - 1
// times; in COUNTED_CALLS it is an indirect call of `plain_return`, which does nothing but return.

#ifndef COUNTED_H
#define COUNTED_H

#ifdef __aarch64__
#define COUNTED_LOOP(NAME, COUNT)                                            \
    do {                                                                     \
        unsigned long left_ = (COUNT);                                       \
        __asm__ volatile("1: sub %0, %0, #1\n"                               \
                         ".globl " #NAME "\n" #NAME ": cbnz %0, 1b\n"        \
                         : "+r"(left_));                                     \
    } while (0)
#define COUNTED_CALLS(NAME, COUNT)                                           \
    do {                                                                     \
        unsigned long left_ = (COUNT);                                       \
        __asm__ volatile("adr x16, plain_return\n"                           \
                         "1: sub %0, %0, #1\n"                               \
                         ".globl " #NAME "\n" #NAME ": blr x16\n"            \
                         "cbnz %0, 1b\n"                                     \
                         "b 2f\n.globl plain_return\nplain_return: ret\n2:"  \
                         : "+r"(left_) : : "x16", "x30");                    \
    } while (0)
#elif defined(__riscv)
#define COUNTED_LOOP(NAME, COUNT)                                            \
    do {                                                                     \
        unsigned long left_ = (COUNT);                                       \
        __asm__ volatile("1: addi %0, %0, -1\n"                              \
                         ".globl " #NAME "\n" #NAME ": bnez %0, 1b\n"        \
                         : "+r"(left_));                                     \
    } while (0)
#define COUNTED_CALLS(NAME, COUNT)                                           \
    do {                                                                     \
        unsigned long left_ = (COUNT);                                       \
        __asm__ volatile("lla t1, plain_return\n"                            \
                         "1: addi %0, %0, -1\n"                              \
                         ".globl " #NAME "\n" #NAME ": jalr t1\n"            \
                         "bnez %0, 1b\n"                                     \
                         "j 2f\n.globl plain_return\nplain_return: ret\n2:"  \
                         : "+r"(left_) : : "t1", "ra");                      \
    } while (0)
#else
#define COUNTED_LOOP(NAME, COUNT)                                            \
    do {                                                                     \
        unsigned long left_ = (COUNT);                                       \
        __asm__ volatile("1: dec %0\n"                                       \
                         ".globl " #NAME "\n" #NAME ": jnz 1b\n"             \
                         : "+r"(left_) : : "cc");                            \
    } while (0)
#define COUNTED_CALLS(NAME, COUNT)                                           \
    do {                                                                     \
        unsigned long left_ = (COUNT);                                       \
        __asm__ volatile("lea plain_return(%%rip), %%rax\n"                  \
                         "1: .globl " #NAME "\n" #NAME ": call *%%rax\n"     \
                         "dec %0\n jnz 1b\n"                                 \
                         "jmp 2f\n.globl plain_return\nplain_return: ret\n2:" \
                         : "+r"(left_) : : "cc", "rax", "memory");           \
    } while (0)
#endif

#endif
