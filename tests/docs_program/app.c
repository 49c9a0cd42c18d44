/* A program for the examples in the documentation: counts words in text that it makes up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024, WORDS = 4000, LINES = 10 };

struct entry {
    struct entry *next;
    unsigned count;
    char word[24];
};

static struct entry *table[BUCKETS];
static unsigned long state = 20260101;

static unsigned chance(unsigned below) {
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(state >> 33) % below;
}

static unsigned hash(const char *word) {
    unsigned value = 2166136261u;
    for (; *word; word++)
        value = (value ^ (unsigned char)*word) * 16777619u;
    return value % BUCKETS;
}

static struct entry *find(const char *word) {
    struct entry **place = &table[hash(word)];
    for (; *place; place = &(*place)->next)
        if (strcmp((*place)->word, word) == 0)
            return *place;
    struct entry *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        abort();
    strncpy(fresh->word, word, sizeof fresh->word - 1);
    return *place = fresh;
}

static void make_word(char *word) {
    unsigned length = 1 + chance(8);
    for (unsigned i = 0; i < length; i++)
        word[i] = "etaoinshrdlucmfw"[chance(i ? 16 : 4)];
    word[length] = 0;
}

static int by_count(const void *a, const void *b) {
    const struct entry *left = *(struct entry *const *)a, *right = *(struct entry *const *)b;
    if (left->count != right->count)
        return left->count < right->count ? 1 : -1;
    return strcmp(left->word, right->word);
}

static unsigned collect(struct entry **out, unsigned room) {
    unsigned found = 0;
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct entry *each = table[i]; each && found < room; each = each->next)
            out[found++] = each;
    return found;
}

int main(int argc, char **argv) {
    static struct entry *sorted[1 << 18];
    char word[24];
    if (argc > 3)
        fprintf(stderr, "usage: %s [words] [seed]\n", argv[0]);
    for (unsigned line = 0; line < LINES; line++)
        for (unsigned i = 0; i < WORDS / 10; i++) {
            make_word(word);
            find(word)->count++;
        }
    unsigned found = collect(sorted, sizeof sorted / sizeof *sorted);
    qsort(sorted, found, sizeof *sorted, by_count);
    for (unsigned i = 0; i < 5 && i < found; i++)
        printf("%s %u\n", sorted[i]->word, sorted[i]->count);
    return 0;
}
