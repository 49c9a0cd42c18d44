/* Preloaded: lets the Nth call of one function fail, and tells how many there were.

   FAULT_CALL names the function, FAULT_AT is N (none fails if it is 0), FAULT_ERROR the error
   number, FAULT_COUNT a file to which the number of calls is written at the end. Calls count after
   begin_faults(): Python itself has begun by then. What the C library and the loader call by
   themselves is not seen. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static long calls;
static int has_begun;

void begin_faults(void)
{
    has_begun = 1;
}

static int fails(const char *name)
{
    const char *wanted = getenv("FAULT_CALL"), *at = getenv("FAULT_AT");
    const char *error = getenv("FAULT_ERROR");
    if (!has_begun || !wanted || strcmp(wanted, name) != 0)
        return 0;
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) != atol(at ? at : "0"))
        return 0;
    errno = atoi(error ? error : "5");
    return 1;
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("FAULT_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%ld", calls);
        fclose(file);
    }
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t size)
{
    return fails("write") ? -1 : REAL(write)(fd, data, size);
}

int rename(const char *from, const char *to)
{
    return fails("rename") ? -1 : REAL(rename)(from, to);
}

int fsync(int fd)
{
    return fails("fsync") ? -1 : REAL(fsync)(fd);
}

/* Memory that Python takes for itself is left alone: a thread that gets none when it starts never says
   that it has started, and who started it waits for ever (CPython: Lib/threading.py, start). */
static int is_python_s_own(int protection, int fd)
{
    return fd < 0 && protection != PROT_NONE;
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return !is_python_s_own(protection, fd) && fails("mmap")
        ? MAP_FAILED
        : REAL(mmap)(at, size, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return !is_python_s_own(protection, fd) && fails("mmap")
        ? MAP_FAILED
        : REAL(mmap64)(at, size, protection, flags, fd, offset);
}
