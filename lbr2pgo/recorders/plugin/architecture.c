#include "architecture.h"

const struct architecture *architecture_of(uint64_t machine) {
    static const struct architecture *const all[] = {&x86_64, &aarch64, &riscv64};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->machine == machine)
            return all[i];
    return NULL;
}

int64_t sign_extend(uint64_t value, unsigned bits) {
    return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

int64_t little_endian(const uint8_t *bytes, size_t size) {
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;)
        value = value << 8 | bytes[i];
    return sign_extend(value, (unsigned)(8 * size));
}
