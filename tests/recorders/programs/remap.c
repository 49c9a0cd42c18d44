// Maps two files of code at one address in turn: remap FIRST SECOND OFFSET-OF-FUNCTION.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
    enum { ADDRESS = 0x30000000, SIZE = 0x1000 };
    unsigned long offset = strtoul(argv[argc - 1], NULL, 16);
    unsigned long page = offset & ~(unsigned long)(SIZE - 1);
    for (int i = 1; i < argc - 1; i++) {
        int file = open(argv[i], O_RDONLY);
        char *code = mmap((void *)ADDRESS, SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file,
                          (off_t)page);
        close(file);
        if (code == MAP_FAILED)
            return 1;
        ((void (*)(void))(code + (offset - page)))();
        munmap(code, SIZE);
    }
    return 0;
}
