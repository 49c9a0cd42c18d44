// A small language, from text to result, in the three shapes of control flow that profilers find
// hard in C: a tokenizer (a switch that becomes a jump table), a recursive-descent compiler, and a
// bytecode interpreter with a computed goto.
//
//   interp [ROUNDS]     prints a checksum; the work grows linearly with ROUNDS (default 300)

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum token { T_END, T_NUMBER, T_NAME, T_OPEN, T_CLOSE, T_OPERATOR, T_BAD };

enum op {
    OP_PUSH, OP_LOAD, OP_STORE, OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MOD,
    OP_XOR, OP_LESS, OP_JUMP, OP_JUMP_IF_ZERO, OP_CALL, OP_RETURN, OP_HALT,
};

struct scanner {
    const char *at;
    enum token kind;
    int32_t value;
};

struct program {
    int32_t code[512];
    int length;
};

static void emit(struct program *p, int32_t word) {
    if (p->length < (int)(sizeof p->code / sizeof p->code[0]))
        p->code[p->length++] = word;
}

// One case a character class: dense enough that the compiler makes a jump table of it.
static void next_token(struct scanner *s) {
    for (;;) {
        char c = *s->at;
        switch (c) {
        case '\0':
            s->kind = T_END;
            return;
        case ' ': case '\t': case '\n':
            s->at++;
            continue;
        case '(':
            s->at++, s->kind = T_OPEN;
            return;
        case ')':
            s->at++, s->kind = T_CLOSE;
            return;
        case '+': s->value = OP_ADD; break;
        case '-': s->value = OP_SUB; break;
        case '*': s->value = OP_MUL; break;
        case '/': s->value = OP_DIV; break;
        case '%': s->value = OP_MOD; break;
        case '^': s->value = OP_XOR; break;
        case '<': s->value = OP_LESS; break;
        case '0': case '1': case '2': case '3': case '4':
        case '5': case '6': case '7': case '8': case '9':
            for (s->value = 0; *s->at >= '0' && *s->at <= '9'; s->at++)
                s->value = s->value * 10 + (*s->at - '0');
            s->kind = T_NUMBER;
            return;
        default:
            s->kind = c >= 'a' && c <= 'z' ? T_NAME : T_BAD;
            s->value = c - 'a';
            s->at++;
            return;
        }
        s->at++;
        s->kind = T_OPERATOR;
        return;
    }
}

static int binding_strength(int32_t op) {
    switch (op) {
    case OP_LESS: return 1;
    case OP_XOR: return 2;
    case OP_ADD: case OP_SUB: return 3;
    default: return 4;
    }
}

// Recursion: an operand may be a parenthesised expression, and so on down.
static void compile_expression(struct scanner *s, struct program *p, int weakest) {
    if (s->kind == T_OPEN) {
        next_token(s);
        compile_expression(s, p, 0);
    } else {
        emit(p, s->kind == T_NAME ? OP_LOAD : OP_PUSH);
        emit(p, s->value);
    }
    next_token(s);
    while (s->kind == T_OPERATOR && binding_strength(s->value) > weakest) {
        int32_t op = s->value;
        next_token(s);
        compile_expression(s, p, binding_strength(op));
        emit(p, op);
    }
}

static int32_t run(const struct program *p, int32_t *variables) {
    static const void *const labels[] = {
        &&push, &&load, &&store, &&add, &&subtract, &&multiply, &&divide, &&modulo,
        &&exclusive_or, &&less, &&jump, &&jump_if_zero, &&call, &&ret, &&halt,
    };
    int32_t stack[256];
    int32_t *top = stack;
    const int32_t *pc = p->code;
#define NEXT goto *labels[*pc++]
#define BINARY(expression) do { int32_t b = *--top, a = top[-1]; top[-1] = (expression); } while (0)
    NEXT;
push: *top++ = *pc++; NEXT;
load: *top++ = variables[*pc++]; NEXT;
store: variables[*pc++] = *--top; NEXT;
add: BINARY((int32_t)((uint32_t)a + (uint32_t)b)); NEXT;
subtract: BINARY((int32_t)((uint32_t)a - (uint32_t)b)); NEXT;
multiply: BINARY((int32_t)((uint32_t)a * (uint32_t)b)); NEXT;
divide: BINARY(b > 0 ? a / b : 0); NEXT;
modulo: BINARY(b > 0 ? a % b : 0); NEXT;
exclusive_or: BINARY(a ^ b); NEXT;
less: BINARY(a < b); NEXT;
jump: pc = p->code + *pc; NEXT;
jump_if_zero: pc = *--top == 0 ? p->code + *pc : pc + 1; NEXT;
call: *top++ = (int32_t)(pc + 1 - p->code); pc = p->code + *pc; NEXT;
ret: { int32_t result = *--top; int32_t back = *--top; *top++ = result; pc = p->code + back; } NEXT;
halt: return top > stack ? top[-1] : 0;
}

// i = count; a = seed; do { a = EXPRESSION; i = i - 1; } while (0 < i); through a subroutine.
static void compile_loop(struct program *p, const char *text, int32_t count) {
    struct scanner s = {text, T_END, 0};
    const int32_t i = 'i' - 'a', a = 'a' - 'a';
    p->length = 0;
    emit(p, OP_PUSH), emit(p, count), emit(p, OP_STORE), emit(p, i);
    int top = p->length;
    emit(p, OP_CALL);
    int hole = p->length;
    emit(p, 0);
    emit(p, OP_STORE), emit(p, a);
    emit(p, OP_LOAD), emit(p, i), emit(p, OP_PUSH), emit(p, 1), emit(p, OP_SUB);
    emit(p, OP_STORE), emit(p, i);
    emit(p, OP_PUSH), emit(p, 0), emit(p, OP_LOAD), emit(p, i), emit(p, OP_LESS);
    emit(p, OP_JUMP_IF_ZERO);
    int leave = p->length;
    emit(p, 0);
    emit(p, OP_JUMP), emit(p, top);
    p->code[leave] = p->length;
    emit(p, OP_LOAD), emit(p, a), emit(p, OP_HALT);
    p->code[hole] = p->length;
    next_token(&s);
    compile_expression(&s, p, 0);
    emit(p, OP_RETURN);
}

// Native recursion with two calls a level and an unpredictable depth.
__attribute__((noinline)) static uint32_t walk(uint32_t seed, int depth) {
    if (depth == 0 || seed % 7 == 0)
        return seed;
    uint32_t left = walk(seed * 1664525u + 1013904223u, depth - 1);
    return left ^ walk(seed ^ seed >> 3, depth > 2 ? depth - 2 : 0);
}

int main(int argc, char **argv) {
    static const char *const sources[] = {
        "a * 31 + i ^ 12345",
        "(a + i) * (a - i) % 65521 + (a < i)",
        "((a ^ i * 7) % 1009 + (i % 13 < 5) * (a / 3 - i)) ^ (a * (i + (2 * (a % 17) - 3)))",
    };
    int rounds = argc > 1 ? atoi(argv[1]) : 300;
    uint32_t checksum = 1;
    for (int round = 0; round < rounds; round++) {
        for (size_t k = 0; k < sizeof sources / sizeof sources[0]; k++) {
            struct program p;
            int32_t variables[26] = {(int32_t)checksum & 0xffff};
            for (int repeat = 0; repeat < 40; repeat++)
                compile_loop(&p, sources[k], 700 + 100 * round % 500);
            for (int repeat = 0; repeat < 5; repeat++)
                checksum = checksum * 33 + (uint32_t)run(&p, variables);
        }
        checksum = checksum * 31 + walk((uint32_t)round * 2654435761u + 3, 20) + (uint32_t)round;
    }
    printf("checksum %08x\n", checksum);
    return 0;
}
