// Aligns a part of made-up sequences with mutated copies; built with edlib.
// Arguments: a seed, how many pairs, their length, mutations in a hundred, and NW, SHW or HW.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "edlib.h"

static unsigned next(unsigned &seed) {
    seed = seed * 1103515245 + 12345;
    return seed >> 8;
}

static std::string mutated(const std::string &text, unsigned percent, unsigned &seed) {
    std::string out;
    for (char letter : text) {
        unsigned kind = next(seed) % 300;
        if (kind < percent)
            continue;
        out += kind < 2 * percent ? "ACGT"[next(seed) % 4] : letter;
        if (kind >= 300 - percent)
            out += "ACGT"[next(seed) % 4];
    }
    return out;
}

int main(int argc, char **argv) {
    if (argc != 6)
        return 2;
    unsigned seed = atoi(argv[1]), percent = atoi(argv[4]);
    int pairs = atoi(argv[2]), length = atoi(argv[3]);
    EdlibAlignMode mode = !strcmp(argv[5], "NW")    ? EDLIB_MODE_NW
                          : !strcmp(argv[5], "SHW") ? EDLIB_MODE_SHW
                                                    : EDLIB_MODE_HW;
    long total = 0;
    for (int i = 0; i < pairs; i++) {
        std::string target;
        while ((int)target.size() < length)
            target += "ACGT"[next(seed) % 4];
        size_t from = mode == EDLIB_MODE_HW ? length / 4 : 0;
        size_t size = mode == EDLIB_MODE_NW ? length : length / 2;
        std::string query = mutated(target.substr(from, size), percent, seed);
        EdlibAlignConfig how = edlibNewAlignConfig(-1, mode, EDLIB_TASK_PATH, nullptr, 0);
        EdlibAlignResult found = edlibAlign(query.data(), query.size(), target.data(), length, how);
        char *cigar =
            edlibAlignmentToCigar(found.alignment, found.alignmentLength, EDLIB_CIGAR_EXTENDED);
        total += found.editDistance + strlen(cigar);
        free(cigar);
        edlibFreeAlignResult(found);
    }
    printf("%ld\n", total);
}
