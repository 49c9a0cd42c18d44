#include "accesses.h"

#include "calls.h"
#include "maps.h"
#include "options.h"
#include "process.h"
#include "ring.h"
#include "stream.h"

static __attribute__((noinline)) void sample_access(struct cpu *c, uint64_t ip, uint64_t address,
                                                    int is_store) {
    struct {
        struct record_header header;
        uint64_t ip, address, is_store, callers[CHAIN_MAX];
    } sample;
    sample.ip = ip;
    sample.address = address;
    sample.is_store = (uint64_t)is_store;
    // Most data is of stacks and heaps, and nobody asks who called there.
    int has_callers = c->calls && is_of_file(address);
    uint64_t callers = has_callers ? copy_callers(c->calls, sample.callers) : 0;
    size_t size = (size_t)((uint8_t *)(sample.callers + callers) - (uint8_t *)&sample);
    sample.header = (struct record_header){RECORD_ACCESS, (uint32_t)size, now(), c->tid, 0};
    c->until_access = jittered(c, options.accesses);
    append_sample(c, &sample, size);
}

// `data` is the address of the instruction.
static void memory_accessed(unsigned vcpu, uint32_t access, uint64_t address, void *data) {
    struct cpu *c = cpu_of(vcpu);
    if (--c->until_access <= 0)
        sample_access(c, (uint64_t)(uintptr_t)data, address, qemu_plugin_mem_is_store(access));
}

void watch_accesses(struct qemu_plugin_tb *tb) {
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, i);
        void *address = (void *)(uintptr_t)qemu_plugin_insn_vaddr(instruction);
        qemu_plugin_register_vcpu_mem_cb(instruction, memory_accessed, CALLBACK_WITHOUT_REGISTERS,
                                         LOADS_AND_STORES, address);
    }
}
