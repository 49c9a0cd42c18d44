#include "lexer.h"

#include <utility>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

void Lexer::skip_blanks() {
    for (; at_ < end_; at_++) {
        if (*at_ == '#')
            while (at_ < end_ && *at_ != '\n')
                at_++;
        if (at_ == end_ || (*at_ != ' ' && *at_ != '\t' && *at_ != '\r' && *at_ != '\n'))
            return;
        line += *at_ == '\n';
    }
}

Token Lexer::next() {
    skip_blanks();
    const char *start = at_;
    if (at_ == end_)
        return Token::End;
    Token token = is_digit(*at_) ? number() : is_letter(*at_) ? word() : symbol(*at_++);
    text = std::string_view(start, at_ - start);
    return token;
}

Token Lexer::number() {
    while (at_ < end_ && (is_digit(*at_) || *at_ == '.'))
        at_++;
    return Token::Number;
}

Token Lexer::word() {
    static constexpr std::pair<std::string_view, Token> keywords[] = {
        {"fn", Token::Function}, {"let", Token::Let},       {"if", Token::If},
        {"else", Token::Else},   {"while", Token::While},   {"return", Token::Return},
        {"nil", Token::Nil},     {"and", Token::And},       {"or", Token::Or},
        {"not", Token::Not},
    };
    const char *start = at_;
    while (at_ < end_ && (is_letter(*at_) || is_digit(*at_)))
        at_++;
    std::string_view found(start, at_ - start);
    for (const auto &[name, token] : keywords)
        if (found == name)
            return token;
    return Token::Name;
}

Token Lexer::string() {
    while (at_ < end_ && *at_ != '"')
        line += *at_++ == '\n';
    if (at_ == end_)
        return Token::Bad;
    at_++;
    return Token::String;
}

Token Lexer::either(char second, Token pair, Token single) {
    if (at_ == end_ || *at_ != second)
        return single;
    at_++;
    return pair;
}

Token Lexer::symbol(char first) {
    switch (first) {
    case '(': return Token::Open;
    case ')': return Token::Close;
    case '[': return Token::OpenList;
    case ']': return Token::CloseList;
    case '{': return Token::OpenBlock;
    case '}': return Token::CloseBlock;
    case ',': return Token::Comma;
    case '+': return Token::Plus;
    case '-': return Token::Minus;
    case '*': return Token::Times;
    case '/': return Token::Divide;
    case '%': return Token::Modulo;
    case '"': return string();
    case '=': return either('=', Token::Equal, Token::Assign);
    case '!': return either('=', Token::Unequal, Token::Bad);
    case '<': return either('=', Token::AtMost, Token::Less);
    case '>': return either('=', Token::AtLeast, Token::Greater);
    default: return Token::Bad;
    }
}
