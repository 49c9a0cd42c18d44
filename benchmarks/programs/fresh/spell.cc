// Looks up words of a dictionary, some of them misspelt, and asks for better; built with Hunspell,
// for which the clock stands still, since suggestions end after some time.
// Arguments: a seed, how many words, of how many wrong ones one is to be corrected, and the files
// of affixes and words.

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "hunspell.hxx"

extern "C" clock_t clock() noexcept { return 0; }

static std::vector<std::string> words_of(const char *name) {
    std::vector<std::string> words;
    std::ifstream file(name);
    std::string line;
    std::getline(file, line); // how many there are
    while (std::getline(file, line))
        words.push_back(line.substr(0, line.find_first_of("/\t")));
    return words;
}

static void misspell(std::string &word, std::mt19937 &chance) {
    size_t at = chance() % word.size();
    if ((word[at] & 0x80) || word.size() < 3)
        return;
    switch (chance() % 3) {
    case 0:
        word[at] = char('a' + chance() % 26);
        break;
    case 1:
        word.erase(at, 1);
        break;
    default:
        word.insert(at, 1, word[at]);
    }
}

int main(int argc, char **argv) {
    if (argc < 6)
        return 2;
    std::mt19937 chance(atoi(argv[1]));
    Hunspell speller(argv[4], argv[5]);
    std::vector<std::string> words = words_of(argv[5]);
    unsigned right = 0, wrong = 0, suggested = 0;
    for (int i = 0; i < atoi(argv[2]); i++) {
        std::string word = words[chance() % words.size()];
        if (!word.empty() && chance() % 2)
            misspell(word, chance);
        if (speller.spell(word))
            right++;
        else if (wrong++ % atoi(argv[3]) == 0)
            for (const std::string &each : speller.suggest(word))
                suggested += each.size();
    }
    printf("%u right, %u wrong, %u letters suggested\n", right, wrong, suggested);
}
