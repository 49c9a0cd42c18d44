#include "compiler.h"

#include <cstdlib>

#include "lexer.h"

namespace {

struct Operator {
    int strength;  // 0: no binary operator
    Op op;
};

Operator binary_operator(Token token) {
    switch (token) {
    case Token::Equal: return {3, Op::Equal};
    case Token::Unequal: return {3, Op::Unequal};
    case Token::Less: return {4, Op::Less};
    case Token::AtMost: return {4, Op::AtMost};
    case Token::Greater: return {4, Op::Greater};
    case Token::AtLeast: return {4, Op::AtLeast};
    case Token::Plus: return {5, Op::Add};
    case Token::Minus: return {5, Op::Subtract};
    case Token::Times: return {6, Op::Multiply};
    case Token::Divide: return {6, Op::Divide};
    case Token::Modulo: return {6, Op::Modulo};
    case Token::And: return {2, Op::JumpIfFalseKeep};
    case Token::Or: return {1, Op::JumpIfTrueKeep};
    default: return {0, Op::Nil};
    }
}

class Compiler {
public:
    Compiler(std::string_view source, Heap &heap, std::string &error)
        : lexer_(source), heap_(heap), error_(error) {}

    const Function *script() {
        Function *main = heap_.new_function("main");
        function_ = main;
        advance();
        while (token_ != Token::End && error_.empty())
            statement();
        finish();
        return error_.empty() ? main : nullptr;
    }

private:
    void fail(const std::string &what) {
        if (error_.empty())
            error_ = "line " + std::to_string(lexer_.line) + ": " + what;
    }

    void advance() { token_ = lexer_.next(); }

    bool accept(Token token) {
        if (token_ != token)
            return false;
        advance();
        return true;
    }

    void expect(Token token, const char *what) {
        if (!accept(token))
            fail(std::string("expected ") + what);
    }

    std::string name() {
        std::string found(lexer_.text);
        expect(Token::Name, "a name");
        return found;
    }

    void emit(Op op) { function_->code.push_back(static_cast<uint8_t>(op)); }

    void emit(Op op, uint8_t operand) {
        emit(op);
        function_->code.push_back(operand);
    }

    void emit_wide(Op op, size_t operand) {
        if (operand > 0xffff)
            fail("a function is too long");
        emit(op, operand & 0xff);
        function_->code.push_back(operand >> 8 & 0xff);
    }

    size_t jump(Op op) {
        emit_wide(op, 0);
        return function_->code.size();
    }

    void land(size_t jump) {
        size_t here = function_->code.size();
        if (here > 0xffff)
            fail("a function is too long");
        function_->code[jump - 2] = here & 0xff;
        function_->code[jump - 1] = here >> 8 & 0xff;
    }

    size_t constant(Value value) {
        std::vector<Value> &known = function_->constants;
        for (size_t i = 0; i < known.size(); i++)
            if (are_equal(known[i], value))
                return i;
        known.push_back(value);
        return known.size() - 1;
    }

    void finish() {
        function_->locals = static_cast<int>(locals_.size());
        emit(Op::Nil);
        emit(Op::Return);
    }

    void statement() {
        if (accept(Token::Function))
            definition();
        else if (accept(Token::Let))
            let();
        else if (accept(Token::If))
            choice();
        else if (accept(Token::While))
            loop();
        else if (accept(Token::Return)) {
            expression();
            emit(Op::Return);
        } else {
            expression();
            emit(Op::Pop);
        }
    }

    void block() {
        expect(Token::OpenBlock, "{");
        while (token_ != Token::CloseBlock && token_ != Token::End && error_.empty())
            statement();
        expect(Token::CloseBlock, "}");
    }

    // Locals live in slots that the frame has from its start on: one a name, block or not.
    int local(const std::string &name) {
        for (size_t i = 0; i < locals_.size(); i++)
            if (locals_[i] == name)
                return static_cast<int>(i);
        return -1;
    }

    void definition() {
        std::string called = name();
        if (in_function_)
            fail("functions do not nest");
        Function *outer = function_;
        function_ = heap_.new_function(called);
        in_function_ = true;
        expect(Token::Open, "(");
        while (token_ != Token::Close && error_.empty()) {
            locals_.push_back(name());
            if (!accept(Token::Comma))
                break;
        }
        expect(Token::Close, ")");
        function_->arity = static_cast<int>(locals_.size());
        block();
        finish();
        Function *inner = function_;
        locals_.clear();
        in_function_ = false;
        function_ = outer;
        emit_wide(Op::Constant, constant(Value::of(static_cast<const Function *>(inner))));
        store(called);
        emit(Op::Pop);
    }

    void let() {
        std::string called = name();
        expect(Token::Assign, "=");
        expression();
        if (in_function_ && local(called) < 0) {
            locals_.push_back(called);
            if (locals_.size() > 200)
                fail("too many local names");
        }
        store(called);
        emit(Op::Pop);
    }

    void store(const std::string &called) {
        int slot = local(called);
        if (slot >= 0)
            emit(Op::SetLocal, static_cast<uint8_t>(slot));
        else
            emit_wide(Op::SetGlobal, constant(Value::of(heap_.intern(called))));
    }

    void load(const std::string &called) {
        int slot = local(called);
        if (slot >= 0)
            emit(Op::GetLocal, static_cast<uint8_t>(slot));
        else
            emit_wide(Op::GetGlobal, constant(Value::of(heap_.intern(called))));
    }

    void choice() {
        expression();
        size_t otherwise = jump(Op::JumpIfFalse);
        block();
        if (!accept(Token::Else)) {
            land(otherwise);
            return;
        }
        size_t end = jump(Op::Jump);
        land(otherwise);
        if (accept(Token::If))
            choice();
        else
            block();
        land(end);
    }

    void loop() {
        size_t top = function_->code.size();
        expression();
        size_t end = jump(Op::JumpIfFalse);
        block();
        emit_wide(Op::Jump, top);
        land(end);
    }

    void expression() { operation(0); }

    void operation(int weakest) {
        operand();
        for (;;) {
            Operator found = binary_operator(token_);
            if (found.strength <= weakest)
                return;
            advance();
            bool is_short_cut = found.strength <= 2;
            size_t skip = is_short_cut ? jump(found.op) : 0;
            operation(found.strength);
            if (is_short_cut)
                land(skip);
            else
                emit(found.op);
        }
    }

    void operand() {
        if (accept(Token::Minus)) {
            operand();
            emit(Op::Negate);
        } else if (accept(Token::Not)) {
            operand();
            emit(Op::Not);
        } else {
            primary();
            suffixes();
        }
    }

    void primary() {
        std::string text(lexer_.text);
        if (accept(Token::Number))
            emit_wide(Op::Constant, constant(Value::of(std::strtod(text.c_str(), nullptr))));
        else if (accept(Token::String))
            emit_wide(Op::Constant,
                      constant(Value::of(heap_.intern(text.substr(1, text.size() - 2)))));
        else if (accept(Token::Nil))
            emit(Op::Nil);
        else if (accept(Token::Open)) {
            expression();
            expect(Token::Close, ")");
        } else if (accept(Token::OpenList))
            emit(Op::MakeList, arguments(Token::CloseList, "]"));
        else if (accept(Token::Name))
            named(text);
        else
            fail("expected an expression");
    }

    void named(const std::string &called) {
        if (!accept(Token::Assign)) {
            load(called);
            return;
        }
        expression();
        store(called);
    }

    uint8_t arguments(Token close, const char *what) {
        int count = 0;
        while (token_ != close && error_.empty()) {
            expression();
            count++;
            if (!accept(Token::Comma))
                break;
        }
        expect(close, what);
        if (count > 200)
            fail("too many arguments");
        return static_cast<uint8_t>(count);
    }

    void suffixes() {
        while (error_.empty()) {
            if (accept(Token::Open)) {
                emit(Op::Call, arguments(Token::Close, ")"));
            } else if (accept(Token::OpenList)) {
                expression();
                expect(Token::CloseList, "]");
                if (accept(Token::Assign)) {
                    expression();
                    emit(Op::SetItem);
                    return;
                }
                emit(Op::GetItem);
            } else {
                return;
            }
        }
    }

    Lexer lexer_;
    Heap &heap_;
    std::string &error_;
    Token token_ = Token::End;
    Function *function_ = nullptr;
    bool in_function_ = false;
    std::vector<std::string> locals_;
};

}  // namespace

const Function *compile(std::string_view source, Heap &heap, std::string &error) {
    return Compiler(source, heap, error).script();
}
