#include "exec.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest_memory.h"
#include "stream.h"

enum { INTERPRETERS_MAX = 5, EMULATOR_WORDS = 8 };

struct new_program {
    char *path;
    char **arguments;  // with room for two words an interpreter
    size_t count;
    char heads[INTERPRETERS_MAX][256];  // of the files on the way; scripts are cut into words
};

// Replaces a script by its interpreter, as the kernel does: argv becomes interpreter [word] script
static int enter_script(struct new_program *p, char *line) {
    if (memcmp(line, "#!", 2))
        return 0;
    line[strcspn(line, "\n")] = 0;
    char *interpreter = line + 2 + strspn(line + 2, " \t");
    char *word = interpreter + strcspn(interpreter, " \t");
    if (*word)
        *word++ = 0;
    word += strspn(word, " \t");
    for (size_t n = strlen(word); n && (word[n - 1] == ' ' || word[n - 1] == '\t'); n--)
        word[n - 1] = 0;
    if (!*interpreter)
        return 0;
    size_t leading = *word ? 2 : 1;
    size_t skipped = p->count ? 1 : 0;  // the script's path takes the place of its argv[0]
    memmove(p->arguments + leading + 1, p->arguments + skipped,
            (p->count - skipped) * sizeof(char *));
    p->count += leading + 1 - skipped;
    p->arguments[0] = interpreter;
    if (*word)
        p->arguments[1] = word;
    p->arguments[leading] = p->path;
    p->path = interpreter;
    return 1;
}

// Reads the first bytes of a program that may be executed; their number.
static ssize_t read_head(const char *path, char *head, size_t room) {
    if (access(path, X_OK))
        return 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t size = read(file, head, room - 1);
    close(file);
    head[size > 0 ? size : 0] = 0;
    return size;
}

// Whether the emulator can run it, seeing through scripts.
static int can_emulate(struct new_program *p, const struct emulator *e) {
    for (int level = 0; level < INTERPRETERS_MAX; level++) {
        char *head = p->heads[level];
        ssize_t size = read_head(p->path, head, sizeof p->heads[level]);
        Elf64_Ehdr elf;
        if (size >= (ssize_t)sizeof elf && !memcmp(head, ELFMAG, SELFMAG)) {
            memcpy(&elf, head, sizeof elf);
            return elf.e_ident[EI_CLASS] == ELFCLASS64 && elf.e_machine == e->architecture->machine;
        }
        if (size < 4 || !enter_script(p, head))
            return 0;
    }
    return 0;
}

// Executes the emulator on a program; returns only if that is impossible.
static void emulate(const struct new_program *p, const struct emulator *e, char **environment) {
    const char **command = calloc(EMULATOR_WORDS + p->count + 1, sizeof *command);
    char path[PATH_MAX + 2];
    size_t n = 0;
    if (!command)
        return;
    command[n++] = e->self;
    if (e->sysroot) {
        command[n++] = "-L";
        command[n++] = e->sysroot;
    }
    command[n++] = "-plugin";
    command[n++] = e->option;
    if (p->count) {
        command[n++] = "-0";
        command[n++] = p->arguments[0];
    }
    snprintf(path, sizeof path, "%s%s", p->path[0] == '-' ? "./" : "", p->path);
    command[n++] = path;
    for (size_t i = 1; i < p->count; i++)
        command[n++] = p->arguments[i];
    execve(e->self, (char *const *)command, environment);
    free(command);
}

// The path of execveat as one that works without its directory.
static char *path_below(int64_t directory, char *name) {
    if (name[0] == '/' || directory == AT_FDCWD)
        return name;
    char *path = malloc(strlen(name) + 32);
    if (path)
        sprintf(path, name[0] ? "/proc/self/fd/%d/%s" : "/proc/self/fd/%d", (int)directory, name);
    return path;
}

void follow_exec(const struct emulator *e, int64_t directory, uint64_t path, uint64_t arguments,
                 uint64_t environment, int32_t tid) {
    size_t variables;
    struct new_program *p = calloc(1, sizeof *p);
    char *name = copy_guest_string(path);
    if (!p || !name)
        return;
    p->arguments = copy_guest_strings(arguments, &p->count, 2 * INTERPRETERS_MAX);
    char **copied = copy_guest_strings(environment, &variables, 0);
    p->path = strcmp(name, "/proc/self/exe") ? path_below(directory, name) : (char *)e->program;
    if (!p->arguments || !copied || !p->path)
        return;
    name = p->path;
    if (can_emulate(p, e))
        emulate(p, e, copied);
    else if (!access(name, X_OK))
        append_note(NOTE_EXEC_NOT_FOLLOWED, 0, tid, name);
}
