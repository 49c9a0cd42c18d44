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

enum { CALLBACK_WITHOUT_REGISTERS = 0, LOADS_AND_STORES = 3 };

typedef void block_translated(uint64_t id, struct qemu_plugin_tb *block);
typedef void block_executed(unsigned vcpu, void *data);
typedef void memory_access(unsigned vcpu, uint32_t access, uint64_t address, void *data);
typedef void system_call(uint64_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2,
                         uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7,
                         uint64_t a8);
typedef void system_call_returned(uint64_t id, unsigned vcpu, int64_t number, int64_t result);

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, block_translated *callback);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, block_executed *callback,
                                          int flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction, memory_access *callback,
                                      int flags, int kinds, void *data);
void qemu_plugin_register_vcpu_syscall_cb(uint64_t id, system_call *callback);
void qemu_plugin_register_vcpu_syscall_ret_cb(uint64_t id, system_call_returned *callback);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *instruction);

bool qemu_plugin_mem_is_store(uint32_t access);

const char *qemu_plugin_path_to_binary(void);
uint64_t qemu_plugin_start_code(void);
uint64_t qemu_plugin_entry_code(void);

// The version of the interface, by what QEMU exports.
int interface_version(void);

// Copies an instruction's first bytes and returns how many; `version` is QEMU's own.
size_t instruction_bytes(const struct qemu_plugin_insn *instruction, int version, uint8_t *bytes,
                         size_t room);

#endif
