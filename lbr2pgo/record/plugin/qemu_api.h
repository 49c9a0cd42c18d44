// The few functions of QEMU's plugin interface that the software LBR needs, declared here because
// distributions do not package the header. Interface: QEMU, include/qemu/qemu-plugin.h (7.2 to 9.x)
// and include/plugins/qemu-plugin.h (later); docs/devel/tcg-plugins.rst.
//
// Only callbacks whose types are the same in every version so far (1 to 7) are used: start and end
// of threads and processes are seen through system calls instead.

#ifndef LBR_QEMU_API_H
#define LBR_QEMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define OPTIONAL __attribute__((weak))
#define HIDDEN __attribute__((visibility("hidden"), used))

struct qemu_plugin_tb;
struct qemu_plugin_insn;

struct qemu_info {
    const char *target_name;
    struct {
        int min, cur;
    } version;
    bool system_emulation;
    int cpus[2];
};

enum { CALLBACK_WITHOUT_REGISTERS = 0 };

typedef void block_translated(uint64_t id, struct qemu_plugin_tb *block);
typedef void block_executed(unsigned vcpu, void *data);
typedef void system_call(uint64_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2,
                         uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7,
                         uint64_t a8);
typedef void system_call_returned(uint64_t id, unsigned vcpu, int64_t number, int64_t result);

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, block_translated *callback);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, block_executed *callback,
                                          int flags, void *data);
void qemu_plugin_register_vcpu_syscall_cb(uint64_t id, system_call *callback);
void qemu_plugin_register_vcpu_syscall_ret_cb(uint64_t id, system_call_returned *callback);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *instruction);

// Declared without parameters: version 3 changed them, see instruction_bytes().
void qemu_plugin_insn_data(void);

const char *qemu_plugin_path_to_binary(void);
uint64_t qemu_plugin_start_code(void);
uint64_t qemu_plugin_entry_code(void);

// Only looked for, never called: their presence dates the interface.
OPTIONAL void qemu_plugin_n_vcpus(void);             // removed in version 2
OPTIONAL void qemu_plugin_read_memory_vaddr(void);   // added in version 4
OPTIONAL void qemu_plugin_write_memory_vaddr(void);  // added in version 5
OPTIONAL void qemu_plugin_set_pc(void);              // added in version 6

// A callback that calls block_begins_in_state() with the emulator's state of the processor, its
// CPUArchState, as a third argument: generated code keeps it in a register (QEMU: TCG_AREG0 in
// tcg/*/tcg-target.h), and at the beginning of a block all of the guest's registers are in it.
// Versions before 9 have no other way to a register, and later ones look each up by its name.
HIDDEN void block_begins_in_state(unsigned vcpu, void *data, const void *state);
HIDDEN void state_of_emulator(unsigned vcpu, void *data);

#if defined(__x86_64__)
#define PASS_STATE "movq %rbp, %rdx\n jmp block_begins_in_state\n"
#elif defined(__aarch64__)
#define PASS_STATE "mov x2, x19\n b block_begins_in_state\n"
#endif

#ifdef PASS_STATE
__asm__(".pushsection .text\n"
        ".globl state_of_emulator\n"
        ".hidden state_of_emulator\n"
        "state_of_emulator:\n" PASS_STATE ".popsection\n");
#else
void state_of_emulator(unsigned vcpu, void *data) { block_begins_in_state(vcpu, data, NULL); }
#endif

static inline int interface_version(void) {
    if (qemu_plugin_n_vcpus)
        return 1;
    if (qemu_plugin_set_pc)
        return 6;
    if (qemu_plugin_write_memory_vaddr)
        return 5;
    return qemu_plugin_read_memory_vaddr ? 4 : 2;
}

// Copies an instruction's first bytes and returns how many; `version` is QEMU's own.
static inline size_t instruction_bytes(const struct qemu_plugin_insn *instruction, int version,
                                       uint8_t *bytes, size_t room) {
    size_t size = qemu_plugin_insn_size(instruction);
    size = size < room ? size : room;
    if (version >= 3) {
        size_t (*copy)(const void *, void *, size_t) = (void *)qemu_plugin_insn_data;
        return copy(instruction, bytes, size);
    }
    const uint8_t *(*data)(const void *) = (void *)qemu_plugin_insn_data;
    const uint8_t *from = data(instruction);
    for (size_t i = 0; i < size; i++)
        bytes[i] = from[i];
    return size;
}

#endif
