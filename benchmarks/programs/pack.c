/* A workload for Zstandard: a file packed and unpacked. pack FILE LEVEL TIMES */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zstd.h"

int main(int argc, char **argv) {
    FILE *file = argc == 4 ? fopen(argv[1], "rb") : NULL;
    if (!file)
        return 2;
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file), room = ZSTD_compressBound(size), packed = 0;
    char *text = malloc(size + 1), *small = malloc(room), *again = malloc(size + 1);
    rewind(file);
    if (!text || !small || !again || fread(text, 1, size, file) != size)
        return 2;
    for (int i = 0; i < atoi(argv[3]); i++) {
        packed = ZSTD_compress(small, room, text, size, atoi(argv[2]) + i);
        if (ZSTD_isError(packed) || ZSTD_decompress(again, size, small, packed) != size)
            return 1;
    }
    printf("%zu of %zu\n", packed, size);
    return memcmp(text, again, size) != 0;
}
