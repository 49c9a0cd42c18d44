#include "qemu_api.h"

#define OPTIONAL __attribute__((weak))

// Declared without parameters: version 3 changed them, see instruction_bytes().
void qemu_plugin_insn_data(void);

// Only looked for, never called: their presence dates the interface.
OPTIONAL void qemu_plugin_n_vcpus(void);             // removed in version 2
OPTIONAL void qemu_plugin_read_memory_vaddr(void);   // added in version 4
OPTIONAL void qemu_plugin_write_memory_vaddr(void);  // added in version 5
OPTIONAL void qemu_plugin_set_pc(void);              // added in version 6

int interface_version(void) {
    if (qemu_plugin_n_vcpus)
        return 1;
    if (qemu_plugin_set_pc)
        return 6;
    if (qemu_plugin_write_memory_vaddr)
        return 5;
    return qemu_plugin_read_memory_vaddr ? 4 : 2;
}

size_t instruction_bytes(const struct qemu_plugin_insn *instruction, int version, uint8_t *bytes,
                         size_t room) {
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
