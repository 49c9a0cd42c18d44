// A software LBR: a QEMU user-mode plugin that keeps, for each thread of the guest, a ring of the
// last taken branches as Intel's LBR, AMD's LbrExtV2 and Arm's BRBE do, and samples it.
//
// QEMU runs a guest in translated blocks of straight-line code. The plugin is called as each block
// begins. What the last instruction of the block before did follows from where this one starts: at
// a direct branch's target, right behind it, or elsewhere. A block that QEMU cut short simply goes
// on behind its last instruction. Starts that no branch explains are signals, returns from signals
// and blocks that QEMU had to begin again: they enter no counts.
//
// Arguments: dir=DIRECTORY machine=EM_NUMBER period=N seed=N depth=N filter=MASK callstack=0|1
// callgraph=0|1 cycles=0|1 exact=0|1 halves=0|1 exec=0|1 [sysroot=PATH] [returns=N]
// [l1i=, l2=, itlb=, stlb=, btb=ENTRIES/WAYS] [misses=N] [most=N] [accesses=N]
// [until=ADDRESS untilin=PROGRAM].

#include <errno.h>
#include <pthread.h>

#include "accesses.h"
#include "blocks.h"
#include "emulator.h"
#include "execution.h"
#include "guest_memory.h"
#include "maps.h"
#include "options.h"
#include "process.h"
#include "qemu_api.h"
#include "stream.h"
#include "system_calls.h"

EXPORT int qemu_plugin_version;

static void translate(uint64_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    enum { INSTRUCTION_MAX = 16 };
    uint8_t bytes[INSTRUCTION_MAX];
    size_t n = qemu_plugin_tb_n_insns(tb);
    if (n == 0)
        return;
    struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);
    struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, n - 1);
    struct block b = {0};
    b.start = qemu_plugin_insn_vaddr(first);
    b.from = qemu_plugin_insn_vaddr(last);
    b.end = b.from + qemu_plugin_insn_size(last);
    b.instructions = (uint32_t)n;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    void *host = qemu_plugin_insn_haddr(first);
    if (host)
        guest_base = (uint64_t)(uintptr_t)host - b.start;
    pthread_once(&once, start_process);
    size_t size = instruction_bytes(last, options.version, bytes, sizeof bytes);
    describe_end(&b, emulator.architecture->decode(b.from, bytes, size));
    b.map = serial_at(b.start);
    struct block *block = intern_block(&b);
    block_executed *callback = options.wants_more ? block_begins_in_full : block_begins;
    if (b.start == emulator.entry)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, program_begins, CALLBACK_WITHOUT_REGISTERS, NULL);
    if (block)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, callback, CALLBACK_WITHOUT_REGISTERS, block);
    else
        append_note(NOTE_NO_MEMORY, ENOMEM, 0, NULL);
    if (options.accesses)
        watch_accesses(tb);
    if (b.start == emulator.started)  // behind what takes the branch to it
        qemu_plugin_register_vcpu_tb_exec_cb(tb, start_ends, CALLBACK_WITHOUT_REGISTERS, NULL);
}

__attribute__((constructor)) static void declare_version(void) {
    qemu_plugin_version = interface_version();
}

EXPORT int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv) {
    options.version = info->version.cur;
    if (!read_options(argc, argv) || info->system_emulation)
        return 1;
    remember_emulator(argc, argv);
    if (follow_forks())
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_vcpu_syscall_cb(id, before_call);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, after_call);
    return 0;
}
