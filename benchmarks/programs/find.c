// Looks for patterns in text that it makes. Arguments: a seed, how many lines, and the patterns;
// built with Oniguruma.

#include <oniguruma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t make_line(unsigned *seed, char *line) {
    char *end = line;
    for (int i = 0; i < 40; i++) {
        *seed = *seed * 1103515245 + 12345;
        unsigned letter = *seed >> 20 & 1 ? 0x400 + (*seed >> 8) % 0x50 : 0x20 + (*seed >> 8) % 0x5f;
        if (letter >= 0x80)
            *end++ = (char)(0xc0 | letter >> 6);
        *end++ = (char)(letter >= 0x80 ? 0x80 | (letter & 0x3f) : letter);
    }
    return (size_t)(end - line);
}

int main(int argc, char **argv) {
    unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    int lines = argc > 2 ? atoi(argv[2]) : 10, found = 0;
    for (int i = 3; i < argc; i++) {
        regex_t *pattern;
        OnigErrorInfo error;
        const OnigUChar *text = (const OnigUChar *)argv[i];
        if (onig_new(&pattern, text, text + strlen(argv[i]), ONIG_OPTION_IGNORECASE,
                     ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &error))
            return 1;
        for (int k = 0; k < lines; k++) {
            char line[160];
            const OnigUChar *start = (OnigUChar *)line, *end = start + make_line(&seed, line);
            found += onig_search(pattern, start, end, start, end, NULL, ONIG_OPTION_NONE) >= 0;
        }
        onig_free(pattern);
    }
    printf("%d\n", found);
}
