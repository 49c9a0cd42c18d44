// A predictor of what comes next at a branch, by what came last time after the same history: tables
// for ever longer histories, each entry with a tag, and the longest that knows the branch is right.
//
// Of directions that is TAGE, of targets ITTAGE, both simplified (A. Seznec, P. Michaud, "A case for
// (partially) TAgged GEometric history length branch prediction", JILP 8, 2006; A. Seznec, "A 64-Kbytes
// ITTAGE indirect branch predictor", JWAC-2, 2011): processors of the last decade have such ones.

#ifndef LBR_TAGGED_H
#define LBR_TAGGED_H

#include <stdint.h>

enum { HISTORIES = 4, TABLE_BITS = 11, TABLE = 1 << TABLE_BITS };

struct guess {
    uint32_t value;
    uint16_t tag;
    uint8_t confidence;
    uint8_t useful;
};

struct tagged {
    struct guess base[TABLE];  // by the branch alone, without tags
    struct guess tables[HISTORIES][TABLE];
};

// Learns what came at a branch; whether something else was expected.
int mispredicts(struct tagged *tagged, uint64_t from, uint64_t history, uint32_t value);

#endif
