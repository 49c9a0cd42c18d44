// Tells how names of hosts in any language are written in ASCII, and back, which of them their
// country allows, and what they are by a profile of RFC 3454; built with GNU Libidn.
// Arguments: how often, the profile ("-" for none), flags of IDNA (1: also what is not assigned,
// 2: only what a host may have), 1 to take each line as a text instead of each word as a name, and
// files.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idna.h"
#include "pr29.h"
#include "stringprep.h"
#include "tld.h"

static unsigned sum, names, refused, changed;

static void add(const char *text) {
    for (; *text; text++)
        sum = sum * 31 + (unsigned char)*text;
}

static void convert(const char *name, int flags) {
    char *ascii = NULL, *back = NULL;
    size_t at = 0;
    names++;
    if (idna_to_ascii_8z(name, &ascii, flags) != IDNA_SUCCESS) {
        refused++;
        return;
    }
    add(ascii);
    if (idna_to_unicode_8z8z(ascii, &back, flags) == IDNA_SUCCESS) {
        changed += strcmp(back, name) != 0;
        sum += (unsigned)tld_check_8z(back, &at, NULL) + (unsigned)at;
    }
    free(ascii);
    free(back);
}

static void prepare(const char *text, const char *profile) {
    char *out = NULL;
    if (stringprep_profile(text, &out, profile, 0) == STRINGPREP_OK)
        add(out);
    else
        refused++;
    free(out);
    refused += pr29_8z(text) == PR29_PROBLEM;
}

int main(int argc, char **argv) {
    if (argc < 6)
        return 2;
    const char *parts = atoi(argv[4]) ? "\n" : " \t\n\",;:()<>=%";
    for (int i = 5; i < argc; i++)
        for (int round = 0; round < atoi(argv[1]); round++) {
            static char line[1 << 16];
            FILE *file = fopen(argv[i], "r");
            if (!file)
                return 2;
            while (fgets(line, sizeof line, file))
                for (char *part = strtok(line, parts); part; part = strtok(NULL, parts)) {
                    convert(part, atoi(argv[3]));
                    if (*argv[2] != '-')
                        prepare(part, argv[2]);
                }
            fclose(file);
        }
    printf("%u names, %u refused, %u changed, %08x\n", names, refused, changed, sum);
}
