#include "process.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "calls.h"
#include "counters.h"
#include "elf_head.h"
#include "emulator.h"
#include "flow.h"
#include "maps.h"
#include "options.h"
#include "qemu_api.h"
#include "ring.h"
#include "stream.h"
#include "turns.h"

struct cpu *cpus[CPUS_MAX];

static __thread struct cpu *self;
static uint32_t started_as = STARTED_AFRESH;

static void append_start(int32_t tid, const char *parent_stream) {
    struct start_record body = {
        STREAM_VERSION, emulator.architecture->machine, getpid(), getppid(), started_as,
        known_blocks(), recorded_maps(),                0,
    };
    append_record(RECORD_START, tid, &body, sizeof body, parent_stream);
}

void append_name(int32_t tid, const char *name, int by_exec) {
    uint32_t body[2] = {(uint32_t)by_exec, 0};
    char shortened[16];
    snprintf(shortened, sizeof shortened, "%s", name);
    append_record(RECORD_COMM, tid, body, sizeof body, shortened);
}

static char *below_sysroot(const char *path) {
    char buffer[PATH_MAX];
    snprintf(buffer, sizeof buffer, "%s%s", emulator.sysroot ? emulator.sysroot : "", path);
    char *real = realpath(buffer, NULL);
    return real ? real : realpath(path, NULL);
}

// What QEMU's own loader mapped: the program, and its dynamic loader, whose entry runs first.
static void map_program(int32_t tid) {
    static struct elf_head elf;
    char *path = realpath(qemu_plugin_path_to_binary(), NULL);
    emulator.program = path ? path : "/proc/self/exe";
    const char *name = strrchr(emulator.program, '/');
    append_name(tid, name ? name + 1 : emulator.program, 1);
    if (!path || !read_elf_head(path, &elf)) {
        append_note(NOTE_UNKNOWN_LOAD_ADDRESS, errno, tid, emulator.program);
        return;
    }
    uint64_t bias = qemu_plugin_start_code() - first_code(&elf);
    emulator.entry = bias + elf.header.e_entry;
    if (options.until_in && !strcmp(path, options.until_in))
        emulator.started = bias + options.until;
    map_segments(&elf, bias, path, tid);
    if (!elf.interpreter[0])
        return;
    char *loader = below_sysroot(elf.interpreter);
    if (loader && read_elf_head(loader, &elf))
        map_segments(&elf, qemu_plugin_entry_code() - elf.header.e_entry, loader, tid);
    else
        append_note(NOTE_UNKNOWN_LOAD_ADDRESS, errno, tid, elf.interpreter);
}

void start_process(void) {
    int32_t tid = (int32_t)syscall(SYS_gettid);
    if (!open_stream())
        fprintf(stderr, "lbr2pgo: can't write %s: %s\n", stream.path, strerror(stream.error));
    append_start(tid, NULL);
    map_program(tid);
}

struct cpu *start_cpu(unsigned index) {
    struct cpu *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->index = index;
    c->last = &nowhere;
    c->tid = (int32_t)syscall(SYS_gettid);
    self = c;
    if (c->tid != getpid())
        append_record(RECORD_THREAD, c->tid, NULL, 0, NULL);
    start_counters(c, options.exact);
    reset_ring(c);
    if (options.accesses)
        c->until_access = jittered(c, options.accesses);
    c->predictor.last = options.returns - 1;
    if (options.call_graph && !(c->calls = calloc(1, sizeof *c->calls)))
        append_note(NOTE_NO_MEMORY, ENOMEM, c->tid, NULL);
    if (options.geometries[L1I].entries && !(c->front_end = make_front_end()))
        append_note(NOTE_NO_MEMORY, ENOMEM, c->tid, NULL);
    cpus[index % CPUS_MAX] = c;
    if (options.alike)
        join_turns(index, c->tid);
    return c;
}

void stop_cpu(struct cpu *c) {
    append_record(RECORD_EXIT, c->tid, NULL, 0, NULL);
    cpus[c->index % CPUS_MAX] = NULL;
    stop_counters(c);
    free_calls(c->calls);
    free_front_end(c->front_end);
    free(c);
    self = NULL;
}

static void before_fork(void) {
    turns_before_fork();
    lock_blocks();
    lock_maps();
}

static void after_fork(void) {
    unlock_maps();
    unlock_blocks();
}

static void after_fork_in_parent(void) {
    after_fork();
    turns_after_fork();
}

// In the child: it inherits code, blocks and memory, and starts to count and to record afresh.
static void after_fork_in_child(void) {
    char parent[sizeof stream.path];
    after_fork();
    turns_after_fork_in_child(self ? self->index : 0, (int32_t)syscall(SYS_gettid));
    if (!self)
        return;
    strcpy(parent, stream.path);
    close(stream.file);
    for (unsigned i = 0; i < CPUS_MAX; i++)
        if (cpus[i] && cpus[i] != self)
            cpus[i] = NULL;
    self->tid = (int32_t)syscall(SYS_gettid);
    started_as = STARTED_BY_FORK;
    open_stream();
    const char *name = strrchr(parent, '/');
    append_start(self->tid, name ? name + 1 : parent);
    stop_counters(self);
    start_counters(self, options.exact);
    reset_ring(self);
}

int follow_forks(void) {
    return pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
