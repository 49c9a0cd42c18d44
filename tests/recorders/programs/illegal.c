// Ends as a program does that was built for another processor.
int main(void) { __builtin_trap(); }
