// What an ELF file says of its place in memory: QEMU's own loader maps the program before its first
// instruction, by no system call that could be seen.

#ifndef LBR_ELF_HEAD_H
#define LBR_ELF_HEAD_H

#include <elf.h>
#include <limits.h>
#include <stdint.h>

struct elf_head {
    Elf64_Ehdr header;
    Elf64_Phdr segments[64];
    int segment_count;
    char interpreter[PATH_MAX];
};

// Reads what matters of an ELF file; 0 if it is none that this can read.
int read_elf_head(const char *path, struct elf_head *elf);

// Maps all segments, so many bytes from where they are linked.
void map_segments(const struct elf_head *elf, uint64_t bias, char *path, int32_t tid);

// The lowest address of code as linked, UINT64_MAX without code.
uint64_t first_code(const struct elf_head *elf);

#endif
