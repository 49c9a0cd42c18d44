// Names to values: open addressing over interned strings.
#pragma once

#include "value.h"

class Table {
public:
    // nullptr if the name has no value.
    const Value *find(const Text *name) const;
    void set(const Text *name, const Value &value);

private:
    struct Entry {
        const Text *name = nullptr;
        Value value;
    };

    size_t slot_of(const Text *name) const;
    void grow();

    std::vector<Entry> entries_ = std::vector<Entry>(16);
    size_t used_ = 0;
};
