// Text to bytecode, in one pass.
#pragma once

#include <string>
#include <string_view>

#include "value.h"

// A constant or a jump target is two bytes behind the operation, a slot or a count is one.
enum class Op : uint8_t {
    Constant, Nil, Pop,
    GetLocal, SetLocal, GetGlobal, SetGlobal,
    Add, Subtract, Multiply, Divide, Modulo, Negate, Not,
    Equal, Unequal, Less, AtMost, Greater, AtLeast,
    Jump, JumpIfFalse, JumpIfFalseKeep, JumpIfTrueKeep,
    MakeList, GetItem, SetItem,
    Call, Return,
};

// The script as a function without parameters; nullptr where it is wrong, and `error` says why.
const Function *compile(std::string_view source, Heap &heap, std::string &error);
