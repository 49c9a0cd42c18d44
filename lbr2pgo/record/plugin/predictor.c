#include "predictor.h"

static uint32_t spread(uint64_t address) {
    return (uint32_t)(address ^ address >> 12);
}

int mispredicts_condition(struct predictor *p, uint64_t from, int taken) {
    uint8_t *counter = &p->counters[(spread(from) ^ p->outcomes) % CONDITION_COUNTERS];
    int wrong = (*counter >= 2) != taken;
    if (taken)
        *counter += *counter < 3;
    else
        *counter -= *counter > 0;
    p->outcomes = p->outcomes << 1 | (uint32_t)taken;
    return wrong;
}

int mispredicts_target(struct predictor *p, uint64_t from, uint64_t to) {
    uint64_t *remembered = &p->targets[(spread(from) ^ p->path) % REMEMBERED_TARGETS];
    int wrong = *remembered != to;
    *remembered = to;
    p->path = p->path << 3 ^ spread(to) ^ (uint32_t)(to >> 4);
    return wrong;
}

int mispredicts_return(struct predictor *p, uint64_t to) {
    return p->returns[--p->depth % RETURN_STACK] != to;
}

void expect_return(struct predictor *p, uint64_t address) {
    p->returns[p->depth++ % RETURN_STACK] = address;
}
