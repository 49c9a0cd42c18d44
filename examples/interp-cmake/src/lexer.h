// Text to tokens.
#pragma once

#include <string>
#include <string_view>

enum class Token {
    End, Bad, Number, String, Name,
    Function, Let, If, Else, While, Return, Nil, And, Or, Not,
    Open, Close, OpenList, CloseList, OpenBlock, CloseBlock, Comma,
    Assign, Equal, Unequal, Less, AtMost, Greater, AtLeast,
    Plus, Minus, Times, Divide, Modulo,
};

class Lexer {
public:
    explicit Lexer(std::string_view source) : at_(source.data()), end_(at_ + source.size()) {}

    // Read the next token; afterwards `text` and `line` are its own.
    Token next();

    std::string_view text;
    int line = 1;

private:
    void skip_blanks();
    Token number();
    Token word();
    Token string();
    Token symbol(char first);
    Token either(char second, Token pair, Token single);

    const char *at_;
    const char *end_;
};
