#include "elf_head.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "maps.h"

int read_elf_head(const char *path, struct elf_head *elf) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    const Elf64_Ehdr *h = &elf->header;
    int good = pread(file, &elf->header, sizeof elf->header, 0) == sizeof elf->header &&
               !memcmp(h->e_ident, ELFMAG, SELFMAG) && h->e_ident[EI_CLASS] == ELFCLASS64 &&
               h->e_phentsize == sizeof(Elf64_Phdr);
    elf->segment_count = good && h->e_phnum < 64 ? h->e_phnum : 0;
    ssize_t size = elf->segment_count * (ssize_t)sizeof(Elf64_Phdr);
    good = good && pread(file, elf->segments, (size_t)size, (off_t)h->e_phoff) == size;
    elf->interpreter[0] = 0;
    for (int i = 0; good && i < elf->segment_count; i++) {
        const Elf64_Phdr *p = &elf->segments[i];
        if (p->p_type == PT_INTERP && p->p_filesz < sizeof elf->interpreter) {
            ssize_t got = pread(file, elf->interpreter, p->p_filesz, (off_t)p->p_offset);
            elf->interpreter[got > 0 ? got : 0] = 0;
        }
    }
    close(file);
    return good;
}

void map_segments(const struct elf_head *elf, uint64_t bias, char *path, int32_t tid) {
    for (int i = 0; i < elf->segment_count; i++) {
        const Elf64_Phdr *p = &elf->segments[i];
        if (p->p_type != PT_LOAD || p->p_filesz == 0)
            continue;
        uint64_t address = bias + p->p_vaddr;
        struct region region = {page_down(address), page_up(address + p->p_filesz),
                                page_down(p->p_offset), path, 0};
        map_range(region, (p->p_flags & PF_X) != 0, tid);
    }
}

uint64_t first_code(const struct elf_head *elf) {
    uint64_t first = UINT64_MAX;
    for (int i = 0; i < elf->segment_count; i++) {
        const Elf64_Phdr *p = &elf->segments[i];
        if (p->p_type == PT_LOAD && p->p_flags & PF_X && p->p_vaddr < first)
            first = p->p_vaddr;
    }
    return first;
}
