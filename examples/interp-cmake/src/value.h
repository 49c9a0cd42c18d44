// Values of the language: numbers, strings, lists, functions, and nil.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

enum class Kind : uint8_t { Nil, Number, String, List, Function };

struct Value;

struct Text {
    std::string characters;
    uint32_t hash;
};

struct List {
    std::vector<Value> items;
};

enum class Native : uint8_t { None, Print, Push, Length, Floor, Text };

struct Function {
    std::string name;
    int arity = 0;
    int locals = 0;  // parameters included
    Native native = Native::None;
    std::vector<uint8_t> code;
    std::vector<Value> constants;
};

struct Value {
    Kind kind = Kind::Nil;
    union {
        double number = 0;
        const Text *text;
        List *list;
        const Function *function;
    };

    static Value of(double number);
    static Value of(const Text *text);
    static Value of(List *list);
    static Value of(const Function *function);
};

bool is_true(const Value &value);
bool are_equal(const Value &a, const Value &b);
std::string to_string(const Value &value);

// Owns every string, list and function until the end of the run. Equal strings are one object.
class Heap {
public:
    const Text *intern(const std::string &characters);
    List *new_list();
    Function *new_function(const std::string &name);

private:
    void grow();

    std::vector<std::unique_ptr<Text>> texts_;
    std::vector<std::unique_ptr<List>> lists_;
    std::vector<std::unique_ptr<Function>> functions_;
    std::vector<const Text *> slots_;
};
