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
// callgraph=0|1 cycles=0|1 exact=0|1 halves=0|1 exec=0|1 [sysroot=PATH].

#define _GNU_SOURCE
#include "process.h"
#include "syscalls.h"

EXPORT int qemu_plugin_version;

static const struct numbers *numbers;

static struct cpu *cpu_of(unsigned vcpu) {
    struct cpu *c = cpus[vcpu % CPUS_MAX];
    return __builtin_expect(!c, 0) ? start_cpu(vcpu) : c;
}

static void block_begins(unsigned vcpu, void *data) { enter_block(cpu_of(vcpu), data); }

// The same where call chains are wanted; `state` is the emulator's of the processor.
HIDDEN void block_begins_in_state(unsigned vcpu, void *data, const void *state) {
    struct cpu *c = cpu_of(vcpu);
    if (c->calls)
        look_at_stack(c, state, data);
    enter_block(c, data);
}

// How much the dynamic loader does depends on the environment and on paths: the period begins anew
// with the program's own code, so that these don't decide which of its branches are sampled.
static void program_begins(unsigned vcpu, void *data) {
    static int has_begun;
    (void)data;
    if (!has_begun)
        begin_period(cpu_of(vcpu));
    has_begun = 1;
}

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
    describe_end(&b, emulator.machine == EM_AARCH64 ? decode_aarch64(b.from, bytes, size)
                                                    : decode_x86(b.from, bytes, size));
    pthread_mutex_lock(&maps.lock);
    b.map = serial_at(b.start);
    pthread_mutex_unlock(&maps.lock);
    struct block *block = intern_block(&b);
    block_executed *callback = options.call_graph ? state_of_emulator : block_begins;
    if (b.start == emulator.entry)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, program_begins, CALLBACK_WITHOUT_REGISTERS, NULL);
    if (block)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, callback, CALLBACK_WITHOUT_REGISTERS, block);
    else
        append_note(NOTE_NO_MEMORY, ENOMEM, 0, NULL);
}

static void before_call(uint64_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2,
                        uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7,
                        uint64_t a8) {
    (void)id;
    struct cpu *c = cpus[vcpu % CPUS_MAX];
    if (!c)
        return;
    uint64_t handler;  // the first member of the kernel's struct sigaction
    memcpy(c->call, (uint64_t[8]){a1, a2, a3, a4, a5, a6, a7, a8}, sizeof c->call);
    if (number == numbers->rt_sigreturn)
        c->returning = 1;
    else if (number == numbers->rt_sigaction && a2 && read_guest(a2, &handler, sizeof handler))
        set_handler(a1, handler);
    else if (number == numbers->execve && options.exec)
        follow_exec(&emulator, AT_FDCWD, a1, a2, a3, c->tid);
    else if (number == numbers->execveat && options.exec)
        follow_exec(&emulator, (int32_t)a1, a2, a3, a4, c->tid);
    else if (number == numbers->close)
        keep_stream_open((int32_t)a1);
    else if (number == numbers->dup3 || (numbers->dup2 && number == numbers->dup2))
        keep_stream_open((int32_t)a2);
    else if (number == numbers->exit)
        stop_cpu(c);
    else if (number == numbers->exit_group)
        append_record(RECORD_EXIT, getpid(), NULL, 0, NULL);
}

static void mapped(const struct cpu *c, uint64_t address) {
    enum { PROT_EXECUTABLE = 4, ANONYMOUS = 0x20 };
    int executable = (c->call[2] & PROT_EXECUTABLE) != 0;
    int anonymous = (c->call[3] & ANONYMOUS) != 0;
    struct region region = {address, page_up(address + c->call[1]), 0, "//anon", 0};
    if (!anonymous) {
        region.path = path_of_descriptor((int)c->call[4]);
        region.offset = c->call[5];
    }
    map_range(region, executable, c->tid);
}

static void map_call_returned(const struct cpu *c, int64_t number, uint64_t result) {
    const uint64_t *a = c->call;
    pthread_mutex_lock(&maps.lock);
    if (number == numbers->mmap)
        mapped(c, result);
    else if (number == numbers->munmap)
        remove_range(a[0], page_up(a[0] + a[1]));
    else if (number == numbers->mprotect || number == numbers->pkey_mprotect)
        protect_range(a[0], page_up(a[0] + a[1]), (a[2] & 4) != 0, c->tid);
    else if (number == numbers->mremap)
        move_range(a[0], page_up(a[1]), result, page_up(a[2]), c->tid);
    pthread_mutex_unlock(&maps.lock);
}

static void after_call(uint64_t id, unsigned vcpu, int64_t number, int64_t result) {
    (void)id;
    enum { ERRORS = 4095, SET_NAME = 15 };
    struct cpu *c = cpus[vcpu % CPUS_MAX];
    if (!c || (result < 0 && result >= -ERRORS))
        return;
    map_call_returned(c, number, (uint64_t)result);
    if (number == numbers->close_range)
        reopen_stream(c->call[0], c->call[1]);
    if (number == numbers->prctl && c->call[0] == SET_NAME)
        append_name(c->tid, (const char *)(uintptr_t)(guest_base + c->call[1]), 0);
}

__attribute__((constructor)) static void declare_version(void) {
    qemu_plugin_version = interface_version();
}

EXPORT int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv) {
    options.version = info->version.cur;
    if (!read_options(argc, argv) || info->system_emulation)
        return 1;
    numbers = emulator.machine == EM_AARCH64 ? &aarch64_numbers : &x86_64_numbers;
    ssize_t size = readlink("/proc/self/exe", emulator.self, sizeof emulator.self - 1);
    emulator.self[size > 0 ? size : 0] = 0;
    remember_option(argc, argv);
    if (pthread_atfork(before_fork, after_fork, after_fork_in_child))
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_vcpu_syscall_cb(id, before_call);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, after_call);
    return 0;
}
