// Makes codes of two dimensions (QR) of texts; built with QR Code generator.
// Arguments: how often, how much may be lost (0 to 3), the least version, the mask (-1: the best),
// 1 for bytes instead of what is shortest, and files; each line is a text.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "qrcodegen.hpp"

using qrcodegen::QrCode;
using qrcodegen::QrSegment;

static std::vector<QrSegment> parts(const std::string &text, bool is_bytes) {
    if (is_bytes)
        return {QrSegment::makeBytes({text.begin(), text.end()})};
    return QrSegment::makeSegments(text.c_str());
}

int main(int argc, char **argv) {
    if (argc < 7)
        return 2;
    auto level = static_cast<QrCode::Ecc>(atoi(argv[2]));
    for (int i = 6; i < argc; i++) {
        unsigned sum = 0, codes = 0;
        for (int round = 0; round < atoi(argv[1]); round++) {
            std::ifstream file(argv[i]);
            for (std::string line; std::getline(file, line); codes++) {
                line.resize(std::min<size_t>(line.size(), 1000));
                QrCode made = QrCode::encodeSegments(parts(line, atoi(argv[5])), level,
                                                     atoi(argv[3]), 40, atoi(argv[4]), true);
                for (int y = 0; y < made.getSize(); y += 3)
                    for (int x = 0; x < made.getSize(); x++)
                        sum = sum * 2 + made.getModule(x, y) + (sum >> 31);
            }
        }
        printf("%u codes, %08x\n", codes, sum);
    }
}
