// Converts text of all letters of a block of Unicode to other encodings, and back.
// Arguments: the block's first letter, how often, and the encodings; built with libiconv.

#include <iconv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t converted(const char *to, const char *from, char *in, size_t size, char *out, size_t room) {
    iconv_t descriptor = iconv_open(to, from);
    char *end = out;
    if (descriptor == (iconv_t)-1)
        return 0;
    iconv(descriptor, &in, &size, &end, &room);
    iconv_close(descriptor);
    return (size_t)(end - out);
}

int main(int argc, char **argv) {
    static unsigned letters[256];
    static char there[4096], back[4096];
    unsigned first = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 0x400;
    int rounds = argc > 2 ? atoi(argv[2]) : 1;
    size_t total = 0;
    for (unsigned i = 0; i < 256; i++)
        letters[i] = first + i % 64;
    for (int round = 0; round < rounds; round++)
        for (int i = 3; i < argc; i++) {
            size_t size = converted(argv[i], "UCS-4-INTERNAL", (char *)letters, sizeof letters, there, sizeof there);
            total += size + converted("UTF-8", argv[i], there, size, back, sizeof back);
        }
    printf("%zu\n", total);
}
