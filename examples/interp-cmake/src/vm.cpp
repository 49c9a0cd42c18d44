#include "vm.h"

#include <cmath>
#include <cstdio>

Vm::Vm(Heap &heap) : heap_(heap) {
    define("print", 1, Native::Print);
    define("push", 2, Native::Push);
    define("length", 1, Native::Length);
    define("floor", 1, Native::Floor);
    define("text", 1, Native::Text);
}

void Vm::define(const char *name, int arity, Native native) {
    Function *function = heap_.new_function(name);
    function->arity = arity;
    function->native = native;
    set_global(name, Value::of(static_cast<const Function *>(function)));
}

void Vm::set_global(const std::string &name, const Value &value) {
    globals_.set(heap_.intern(name), value);
}

bool Vm::fail(const std::string &what) {
    error = "in " + frame_.function->name + ": " + what;
    return false;
}

bool Vm::run(const Function *script) {
    frame_ = {script, script->code.data(), 0};
    top_ = script->locals;
    while (frame_.function != nullptr)
        if (!step(static_cast<Op>(*frame_.pc++)))
            return false;
    return true;
}

unsigned Vm::byte() { return *frame_.pc++; }

unsigned Vm::wide() {
    unsigned low = byte();
    return low | byte() << 8;
}

const Value &Vm::constant() { return frame_.function->constants[wide()]; }

bool Vm::push(const Value &value) {
    if (top_ == max_stack)
        return fail("the stack is full");
    stack_[top_++] = value;
    return true;
}

bool Vm::pop(Value &value) {
    if (top_ == frame_.base)
        return fail("the stack is empty");
    value = stack_[--top_];
    return true;
}

bool Vm::pop_number(double &number) {
    Value value;
    if (!pop(value))
        return false;
    if (value.kind != Kind::Number)
        return fail("expected a number, found " + to_string(value));
    number = value.number;
    return true;
}

bool Vm::add() {
    Value a, b;
    if (!pop(b) || !pop(a))
        return false;
    if (a.kind == Kind::String && b.kind == Kind::String)
        return push(Value::of(heap_.intern(a.text->characters + b.text->characters)));
    if (a.kind != Kind::Number || b.kind != Kind::Number)
        return fail("can't add " + to_string(a) + " and " + to_string(b));
    return push(Value::of(a.number + b.number));
}

bool Vm::arithmetic(Op op) {
    double a, b;
    if (!pop_number(b) || !pop_number(a))
        return false;
    switch (op) {
    case Op::Subtract: return push(Value::of(a - b));
    case Op::Multiply: return push(Value::of(a * b));
    case Op::Divide: return b == 0 ? fail("division by zero") : push(Value::of(a / b));
    default: break;
    }
    if (b == 0)
        return fail("division by zero");
    // Whole numbers are common, and fmod is slow.
    if (std::fabs(a) < 1e15 && std::fabs(b) < 1e15) {
        int64_t x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
        if (static_cast<double>(x) == a && static_cast<double>(y) == b)
            return push(Value::of(static_cast<double>(x % y)));
    }
    return push(Value::of(std::fmod(a, b)));
}

bool Vm::compare(Op op) {
    double a, b;
    if (!pop_number(b) || !pop_number(a))
        return false;
    bool holds = false;
    switch (op) {
    case Op::Less: holds = a < b; break;
    case Op::AtMost: holds = a <= b; break;
    case Op::Greater: holds = a > b; break;
    case Op::AtLeast: holds = a >= b; break;
    default: return fail("no comparison");
    }
    return push(Value::of(holds ? 1.0 : 0.0));
}

bool Vm::get_global() {
    const Value &name = constant();
    const Value *value = globals_.find(name.text);
    if (value == nullptr)
        return fail("nothing is called " + name.text->characters);
    return push(*value);
}

bool Vm::set_global() {
    const Value &name = constant();
    if (top_ == frame_.base)
        return fail("the stack is empty");
    globals_.set(name.text, stack_[top_ - 1]);
    return true;
}

bool Vm::make_list() {
    size_t count = byte();
    List *list = heap_.new_list();
    list->items.assign(stack_.begin() + (top_ - count), stack_.begin() + top_);
    top_ -= count;
    return push(Value::of(list));
}

bool Vm::find_item(const Value &list, const Value &index, Value *&item) {
    if (list.kind != Kind::List)
        return fail(to_string(list) + " is no list");
    if (index.kind != Kind::Number)
        return fail(to_string(index) + " is no index");
    double size = static_cast<double>(list.list->items.size());
    if (!(index.number >= 0 && index.number < size))
        return fail("a list of " + to_string(Value::of(size)) + " has no item " + to_string(index));
    item = &list.list->items[static_cast<size_t>(index.number)];
    return true;
}

bool Vm::get_item() {
    Value list, index, *item;
    if (!pop(index) || !pop(list) || !find_item(list, index, item))
        return false;
    return push(*item);
}

bool Vm::set_item() {
    Value list, index, value, *item;
    if (!pop(value) || !pop(index) || !pop(list) || !find_item(list, index, item))
        return false;
    *item = value;
    return push(value);
}

bool Vm::jump_if(bool wanted, bool keeps) {
    unsigned target = wide();
    Value value;
    if (!pop(value))
        return false;
    if (is_true(value) == wanted) {
        frame_.pc = frame_.function->code.data() + target;
        return !keeps || push(value);
    }
    return true;
}

bool Vm::call() {
    size_t arguments = byte();
    const Value &callee = stack_[top_ - arguments - 1];
    if (callee.kind != Kind::Function)
        return fail(to_string(callee) + " is no function");
    const Function *function = callee.function;
    if (static_cast<size_t>(function->arity) != arguments)
        return fail(function->name + " takes " + std::to_string(function->arity) + " arguments");
    return function->native == Native::None ? enter(function, arguments) : call_native(function);
}

bool Vm::enter(const Function *function, size_t arguments) {
    if (frames_.size() == max_depth)
        return fail("calls nest too deep");
    if (top_ + function->locals >= max_stack)
        return fail("the stack is full");
    frames_.push_back(frame_);
    frame_ = {function, function->code.data(), top_ - arguments};
    for (size_t i = arguments; i < static_cast<size_t>(function->locals); i++)
        stack_[top_++] = Value();
    return true;
}

bool Vm::leave() {
    Value result;
    if (!pop(result))
        return false;
    if (frames_.empty()) {
        frame_.function = nullptr;
        return true;
    }
    top_ = frame_.base - 1;  // the function lies below its arguments
    frame_ = frames_.back();
    frames_.pop_back();
    return push(result);
}

bool Vm::call_native(const Function *function) {
    Value last = stack_[top_ - 1];
    Value result;
    switch (function->native) {
    case Native::Print:
        std::printf("%s\n", to_string(last).c_str());
        break;
    case Native::Push: {
        const Value &list = stack_[top_ - 2];
        if (list.kind != Kind::List)
            return fail(to_string(list) + " is no list");
        list.list->items.push_back(last);
        result = list;
        break;
    }
    case Native::Length:
        if (last.kind == Kind::List)
            result = Value::of(static_cast<double>(last.list->items.size()));
        else if (last.kind == Kind::String)
            result = Value::of(static_cast<double>(last.text->characters.size()));
        else
            return fail(to_string(last) + " has no length");
        break;
    case Native::Floor:
        if (last.kind != Kind::Number)
            return fail(to_string(last) + " is no number");
        result = Value::of(std::floor(last.number));
        break;
    case Native::Text:
        result = Value::of(heap_.intern(to_string(last)));
        break;
    case Native::None:
        break;
    }
    top_ -= function->arity + 1;
    return push(result);
}

bool Vm::step(Op op) {
    Value value;
    double number;
    switch (op) {
    case Op::Constant: return push(constant());
    case Op::Nil: return push(Value());
    case Op::Pop: return pop(value);
    case Op::GetLocal: return push(stack_[frame_.base + byte()]);
    case Op::SetLocal: stack_[frame_.base + byte()] = stack_[top_ - 1]; return true;
    case Op::GetGlobal: return get_global();
    case Op::SetGlobal: return set_global();
    case Op::Add: return add();
    case Op::Subtract:
    case Op::Multiply:
    case Op::Divide:
    case Op::Modulo: return arithmetic(op);
    case Op::Negate: return pop_number(number) && push(Value::of(-number));
    case Op::Not: return pop(value) && push(Value::of(is_true(value) ? 0.0 : 1.0));
    case Op::Equal:
    case Op::Unequal: {
        Value other;
        if (!pop(other) || !pop(value))
            return false;
        return push(Value::of(are_equal(value, other) == (op == Op::Equal) ? 1.0 : 0.0));
    }
    case Op::Less:
    case Op::AtMost:
    case Op::Greater:
    case Op::AtLeast: return compare(op);
    case Op::Jump: frame_.pc = frame_.function->code.data() + wide(); return true;
    case Op::JumpIfFalse: return jump_if(false, false);
    case Op::JumpIfFalseKeep: return jump_if(false, true);
    case Op::JumpIfTrueKeep: return jump_if(true, true);
    case Op::MakeList: return make_list();
    case Op::GetItem: return get_item();
    case Op::SetItem: return set_item();
    case Op::Call: return call();
    case Op::Return: return leave();
    }
    return fail("damaged code");
}
