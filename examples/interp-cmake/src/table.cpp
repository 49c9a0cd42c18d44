#include "table.h"

#include <utility>

size_t Table::slot_of(const Text *name) const {
    size_t at = name->hash & (entries_.size() - 1);
    while (entries_[at].name != nullptr && entries_[at].name != name)
        at = (at + 1) & (entries_.size() - 1);
    return at;
}

const Value *Table::find(const Text *name) const {
    const Entry &entry = entries_[slot_of(name)];
    return entry.name == nullptr ? nullptr : &entry.value;
}

void Table::set(const Text *name, const Value &value) {
    if (used_ * 2 >= entries_.size())
        grow();
    Entry &entry = entries_[slot_of(name)];
    used_ += entry.name == nullptr;
    entry.name = name;
    entry.value = value;
}

void Table::grow() {
    std::vector<Entry> old(entries_.size() * 2);
    std::swap(old, entries_);
    for (const Entry &entry : old)
        if (entry.name != nullptr)
            entries_[slot_of(entry.name)] = entry;
}
