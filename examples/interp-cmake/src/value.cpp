#include "value.h"

#include <cmath>
#include <cstdio>

Value Value::of(double number) {
    Value value;
    value.kind = Kind::Number;
    value.number = number;
    return value;
}

Value Value::of(const Text *text) {
    Value value;
    value.kind = Kind::String;
    value.text = text;
    return value;
}

Value Value::of(List *list) {
    Value value;
    value.kind = Kind::List;
    value.list = list;
    return value;
}

Value Value::of(const Function *function) {
    Value value;
    value.kind = Kind::Function;
    value.function = function;
    return value;
}

bool is_true(const Value &value) {
    if (value.kind == Kind::Nil)
        return false;
    return value.kind != Kind::Number || value.number != 0;
}

bool are_equal(const Value &a, const Value &b) {
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case Kind::Nil: return true;
    case Kind::Number: return a.number == b.number;
    case Kind::String: return a.text == b.text;  // interned
    case Kind::List: return a.list == b.list;
    case Kind::Function: return a.function == b.function;
    }
    return false;
}

static std::string number_text(double number) {
    char buffer[32];
    const char *format = number == std::floor(number) && std::fabs(number) < 1e15 ? "%.0f" : "%.10g";
    std::snprintf(buffer, sizeof buffer, format, number);
    return buffer;
}

std::string to_string(const Value &value) {
    switch (value.kind) {
    case Kind::Nil: return "nil";
    case Kind::Number: return number_text(value.number);
    case Kind::String: return value.text->characters;
    case Kind::Function: return "<function " + value.function->name + ">";
    case Kind::List: break;
    }
    std::string joined;
    for (const Value &item : value.list->items)
        joined += (joined.empty() ? "" : ", ") + to_string(item);
    return "[" + joined + "]";
}

// FNV-1a.
static uint32_t hash_of(const std::string &characters) {
    uint32_t hash = 2166136261u;
    for (unsigned char c : characters)
        hash = (hash ^ c) * 16777619u;
    return hash;
}

const Text *Heap::intern(const std::string &characters) {
    if (texts_.size() * 2 >= slots_.size())
        grow();
    uint32_t hash = hash_of(characters);
    size_t at = hash & (slots_.size() - 1);
    while (slots_[at] != nullptr) {
        if (slots_[at]->hash == hash && slots_[at]->characters == characters)
            return slots_[at];
        at = (at + 1) & (slots_.size() - 1);
    }
    texts_.push_back(std::make_unique<Text>(Text{characters, hash}));
    return slots_[at] = texts_.back().get();
}

void Heap::grow() {
    slots_.assign(slots_.empty() ? 64 : slots_.size() * 2, nullptr);
    for (const auto &text : texts_) {
        size_t at = text->hash & (slots_.size() - 1);
        while (slots_[at] != nullptr)
            at = (at + 1) & (slots_.size() - 1);
        slots_[at] = text.get();
    }
}

List *Heap::new_list() {
    lists_.push_back(std::make_unique<List>());
    return lists_.back().get();
}

Function *Heap::new_function(const std::string &name) {
    functions_.push_back(std::make_unique<Function>());
    functions_.back()->name = name;
    return functions_.back().get();
}
