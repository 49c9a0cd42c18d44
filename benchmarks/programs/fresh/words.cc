// Makes a dictionary and tells the words of texts; built with MeCab.
// Arguments: those of mecab, or "index" and those of mecab-dict-index.

#include <cstring>

#include "mecab.h"

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "index"))
        return mecab_dict_index(argc - 1, argv + 1);
    return mecab_do(argc, argv);
}
