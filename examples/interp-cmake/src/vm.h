// Runs bytecode on a stack. What goes wrong in a script ends its run with a message.
#pragma once

#include <string>

#include "compiler.h"
#include "table.h"

class Vm {
public:
    explicit Vm(Heap &heap);

    void set_global(const std::string &name, const Value &value);

    // Whether the script came to its end; if not, `error` says why.
    bool run(const Function *script);

    std::string error;

private:
    struct Frame {
        const Function *function;
        const uint8_t *pc;
        size_t base;
    };

    bool fail(const std::string &what);
    bool step(Op op);
    bool push(const Value &value);
    bool pop(Value &value);
    bool pop_number(double &number);
    bool arithmetic(Op op);
    bool compare(Op op);
    bool add();
    bool get_global();
    bool set_global();
    bool make_list();
    bool find_item(const Value &list, const Value &index, Value *&item);
    bool get_item();
    bool set_item();
    bool jump_if(bool wanted, bool keeps);
    bool call();
    bool enter(const Function *function, size_t arguments);
    bool call_native(const Function *function);
    bool leave();

    const Value &constant();
    unsigned byte();
    unsigned wide();
    void define(const char *name, int arity, Native native);

    static constexpr size_t max_depth = 1000, max_stack = 1 << 16;

    Heap &heap_;
    Table globals_;
    std::vector<Value> stack_ = std::vector<Value>(max_stack);
    size_t top_ = 0;
    std::vector<Frame> frames_;
    Frame frame_{};
};
