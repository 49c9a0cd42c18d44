// Writes records that chance makes, in the formats that are asked for; built with {fmt}.
// Arguments: a seed, how many, and formats of a number, a fraction, a word and a flag.

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string>

#include "fmt/format.h"

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    std::mt19937_64 chance(atoi(argv[1]));
    fmt::memory_buffer out;
    size_t written = 0;
    unsigned sum = 0;
    for (int record = 0; record < atoi(argv[2]); record++) {
        long long number = (long long)(chance()) >> (chance() % 60);
        double fraction = double(int(chance() % 2000001) - 1000000) / (1 + chance() % 9999);
        std::string word(1 + chance() % 12, char('a' + chance() % 26));
        for (int i = 3; i < argc; i++)
            fmt::vformat_to(
                std::back_inserter(out), argv[i],
                fmt::make_format_args(number, fraction, word, record % 3 == 0));
        for (char letter : out)
            sum = sum * 31 + letter;
        written += out.size();
        out.clear();
    }
    printf("%zu bytes, %08x\n", written, sum);
}
