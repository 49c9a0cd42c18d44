/* What nobody can predict, a kind a run: dice search|sort|heap|hash ROUNDS */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 1 << 14 };

static uint64_t state = 88172645463325252u;
static uint32_t numbers[SIZE], slots[2 * SIZE];

static uint32_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

static size_t lower_bound(const uint32_t *sorted, size_t size, uint32_t key) {
    size_t low = 0;
    while (size > 0) {
        size_t half = size / 2;
        if (sorted[low + half] < key) {
            low += half + 1;
            size -= half + 1;
        } else {
            size = half;
        }
    }
    return low;
}

static void quick_sort(uint32_t *first, uint32_t *last) {
    while (last - first > 1) {
        uint32_t pivot = first[(last - first) / 2], *left = first, *right = last - 1;
        while (left <= right) {
            while (*left < pivot)
                left++;
            while (*right > pivot)
                right--;
            if (left <= right) {
                uint32_t kept = *left;
                *left++ = *right;
                *right-- = kept;
            }
        }
        quick_sort(first, right + 1);
        first = left;
    }
}

static void sift(uint32_t *heap, size_t root, size_t size) {
    uint32_t value = heap[root];
    for (size_t child; (child = 2 * root + 1) < size; root = child) {
        if (child + 1 < size && heap[child] < heap[child + 1])
            child++;
        if (heap[child] <= value)
            break;
        heap[root] = heap[child];
    }
    heap[root] = value;
}

static void heap_sort(uint32_t *heap, size_t size) {
    for (size_t root = size / 2; root-- > 0;)
        sift(heap, root, size);
    for (size_t last = size; last-- > 1;) {
        uint32_t kept = heap[0];
        heap[0] = heap[last];
        heap[last] = kept;
        sift(heap, 0, last);
    }
}

static size_t find(uint32_t key) {
    size_t at = key % (2 * SIZE);
    while (slots[at] != 0 && slots[at] != key)
        at = (at + 1) % (2 * SIZE);
    return at;
}

static uint64_t run(const char *kind) {
    uint64_t sum = 0;
    for (size_t i = 0; i < SIZE; i++)
        numbers[i] = next() | 1;
    if (!strcmp(kind, "sort")) {
        quick_sort(numbers, numbers + SIZE);
    } else if (!strcmp(kind, "heap")) {
        heap_sort(numbers, SIZE);
    } else if (!strcmp(kind, "search")) {
        quick_sort(numbers, numbers + SIZE);
        for (size_t i = 0; i < 8 * SIZE; i++)
            sum += lower_bound(numbers, SIZE, next());
    } else {
        memset(slots, 0, sizeof slots);
        for (size_t i = 0; i < SIZE; i++)
            slots[find(numbers[i])] = numbers[i];
        for (size_t i = 0; i < 8 * SIZE; i++)
            sum += slots[find(i & 1 ? numbers[next() % SIZE] : next() | 1)];
    }
    return sum + numbers[SIZE / 3];
}

int main(int argc, char **argv) {
    uint64_t sum = 0;
    for (int i = argc > 2 ? atoi(argv[2]) : 1; i > 0; i--)
        sum += run(argv[1]);
    printf("%llu\n", (unsigned long long)sum);
}
