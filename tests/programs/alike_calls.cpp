// Calls through pointers that an optimizer makes one of: at the ends of two arms, and behind three.

struct Node {
    virtual long visit(long) = 0;
    virtual long leave(long, int) = 0;
};

long two_arms(Node *node, long number, bool is_odd) {
    if (is_odd)
        return node->visit(number + 1) + 3;
    return node->visit(number * 7) + 3;
}

long three_arms(Node *node, long number, int way) {
    long found = 0;
    switch (way) {
    case 0: found = node->leave(number + 5, 1); break;
    case 1: found = node->leave(number * 3, 1); break;
    case 2: found = node->leave(number ^ 9, 1); break;
    }
    return found + 1;
}

long interpret(long (*const *operations)(long), const unsigned char *code, long number) {
    for (;;) {
        switch (*code++) {
        case 0: return number;
        case 1: number = operations[number & 1](number); break;
        case 3:
            number = operations[1](number);
            if (number & 1)
                number = operations[2](number);
            break;
        default: number = operations[2](number);
        }
    }
}
