// Tells kinds of files by their bytes; built with libmagic.
// Arguments: how often, the flags of libmagic, the folder of rules (text), and files.

#include <stdio.h>
#include <stdlib.h>

#include "magic.h"

typedef struct {
    char *bytes;
    size_t size;
} Content;

static int load(const char *name, Content *out) {
    FILE *file = fopen(name, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        return 0;
    out->size = (size_t)ftell(file);
    rewind(file);
    out->bytes = malloc(out->size + 1);
    int is_whole = fread(out->bytes, 1, out->size, file) == out->size;
    return fclose(file) == 0 && is_whole;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    magic_t kinds = magic_open(atoi(argv[2]));
    if (!kinds || magic_load(kinds, argv[3]) != 0)
        return 2;
    for (int i = 4; i < argc; i++) {
        Content content;
        if (!load(argv[i], &content))
            return 2;
        const char *kind = NULL;
        for (int round = 0; round < atoi(argv[1]); round++)
            kind = magic_buffer(kinds, content.bytes, content.size);
        printf("%s\n", kind ? kind : magic_error(kinds));
        free(content.bytes);
    }
    magic_close(kinds);
}
