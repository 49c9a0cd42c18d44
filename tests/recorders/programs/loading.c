// Loads a library, runs it, unloads it, and does the same with another, often at the same address;
// then runs code that it makes itself, and code that mprotect makes executable.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void run_library(const char *path) {
    void *library = dlopen(path, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(1);
    }
    ((void (*)(void))dlsym(library, "library_work"))();
    dlclose(library);
}

int main(int argc, char **argv) {
#ifdef __aarch64__
    static const unsigned code[] = {0xd65f03c0};  // ret
#elif defined(__riscv)
    static const unsigned short code[] = {0x8082};  // ret
#else
    static const unsigned char code[] = {0xc3};  // ret
#endif
    for (int i = 1; i < argc; i++)
        run_library(argv[i]);
    char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(memory + 4096, code, sizeof code);
    mprotect(memory + 4096, 4096, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(memory + 4096, memory + 4096 + sizeof code);
    for (int i = 0; i < 1000; i++)
        ((void (*)(void))(memory + 4096))();
    return 0;
}
