// As much of QEMU's plugin interface as the plugin uses, in any version of it, driven by a script on
// standard input: fake_qemu PLUGIN TARGET ARGUMENT…. Compiled with VERSION, the interface's.
//
//   block NUMBER ADDRESS HEX…     translates a block of instructions
//   run VCPU NUMBER               executes it
//   load|store VCPU NUMBER INDEX ADDRESS  an instruction of it accesses memory
//   call VCPU NUMBER A1 A2 A3     a system call
//   return VCPU NUMBER RESULT     its return
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

struct instruction {
    uint64_t address;
    size_t size;
    uint8_t bytes[16];
    void (*access)(unsigned, uint32_t, uint64_t, void *);
    void *access_data;
};

struct block {
    size_t count;
    struct instruction instructions[16];
    void (*callback)(unsigned, void *);
    void *data;
};

static struct block blocks[256];
static void (*translated)(uint64_t, struct block *);
static void (*called)(uint64_t, unsigned, int64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                      uint64_t, uint64_t, uint64_t);
static void (*returned)(uint64_t, unsigned, int64_t, int64_t);

API void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void *callback) {
    (void)id;
    translated = callback;
}
API void qemu_plugin_register_vcpu_syscall_cb(uint64_t id, void *callback) {
    (void)id;
    called = callback;
}
API void qemu_plugin_register_vcpu_syscall_ret_cb(uint64_t id, void *callback) {
    (void)id;
    returned = callback;
}
API void qemu_plugin_register_vcpu_tb_exec_cb(struct block *block, void *callback, int flags,
                                              void *data) {
    (void)flags;
    block->callback = callback;
    block->data = data;
}
API void qemu_plugin_register_vcpu_mem_cb(struct instruction *i, void *callback, int flags, int kinds,
                                          void *data) {
    (void)flags;
    i->access = kinds == 3 ? callback : NULL;
    i->access_data = data;
}
API bool qemu_plugin_mem_is_store(uint32_t access) { return access == 'S'; }
API size_t qemu_plugin_tb_n_insns(const struct block *block) { return block->count; }
API struct instruction *qemu_plugin_tb_get_insn(struct block *block, size_t index) {
    return &block->instructions[index];
}
API size_t qemu_plugin_insn_size(const struct instruction *i) { return i->size; }
API uint64_t qemu_plugin_insn_vaddr(const struct instruction *i) { return i->address; }
API void *qemu_plugin_insn_haddr(const struct instruction *i) {
    return VERSION >= 6 ? NULL : (void *)(uintptr_t)i->address;
}
#if VERSION >= 3
API size_t qemu_plugin_insn_data(const struct instruction *i, void *to, size_t size) {
    size = size < i->size ? size : i->size;
    memcpy(to, i->bytes, size);
    return size;
}
#else
API const void *qemu_plugin_insn_data(const struct instruction *i) { return i->bytes; }
#endif
#if VERSION < 2
API int qemu_plugin_n_vcpus(void) { return 1; }
#endif
#if VERSION >= 4
API void qemu_plugin_read_memory_vaddr(void) {}
#endif
#if VERSION >= 5
API void qemu_plugin_write_memory_vaddr(void) {}
API void qemu_plugin_register_vcpu_discon_cb(void) {}
#endif
#if VERSION >= 6
API void qemu_plugin_set_pc(void) {}
#endif
API const char *qemu_plugin_path_to_binary(void) { return "/proc/self/exe"; }
API uint64_t qemu_plugin_start_code(void) { return 0x10000000; }
API uint64_t qemu_plugin_entry_code(void) { return 0x10000000; }

static void translate(char *text) {
    char *word = strtok(text, " ");
    struct block *block = &blocks[atoi(word)];
    uint64_t address = strtoull(strtok(NULL, " "), NULL, 16);
    memset(block, 0, sizeof *block);
    while ((word = strtok(NULL, " \n"))) {
        struct instruction *i = &block->instructions[block->count++];
        i->address = address;
        for (; word[2 * i->size]; i->size++)
            sscanf(word + 2 * i->size, "%2hhx", &i->bytes[i->size]);
        address += i->size;
    }
    translated(1, block);
}

int main(int argc, char **argv) {
    struct {
        const char *target_name;
        int min, cur;
        bool system_emulation;
        int cpus[2];
    } info = {argv[2], VERSION < 2 ? 0 : 2, VERSION, false, {0, 0}};
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    int version = *(int *)dlsym(plugin, "qemu_plugin_version");
    if (version < info.min || version > info.cur) {
        fprintf(stderr, "version %d is refused\n", version);
        return 3;
    }
    int (*install)(uint64_t, const void *, int, char **) = dlsym(plugin, "qemu_plugin_install");
    if (install(1, &info, argc - 3, argv + 3))
        return 4;
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        unsigned vcpu, number;
        char kind[8];
        unsigned long a1 = 0, a2 = 0, a3 = 0;
        if (!strncmp(line, "block ", 6))
            translate(line + 6);
        else if (sscanf(line, "run %u %u", &vcpu, &number) == 2)
            blocks[number].callback(vcpu, blocks[number].data);
        else if (sscanf(line, "%7[loadstre] %u %u %lu %lx", kind, &vcpu, &number, &a1, &a2) == 5) {
            struct instruction *i = &blocks[number].instructions[a1];
            i->access(vcpu, *kind == 's' ? 'S' : 'L', a2, i->access_data);
        } else if (sscanf(line, "call %u %u %lx %lx %lx", &vcpu, &number, &a1, &a2, &a3) >= 2)
            called(1, vcpu, number, a1, a2, a3, 0, 0, 0, 0, 0);
        else if (sscanf(line, "return %u %u %lx", &vcpu, &number, &a1) == 3)
            returned(1, vcpu, number, (int64_t)a1);
    }
    fflush(stdout);
    _Exit(0);
}
