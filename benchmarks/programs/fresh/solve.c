// Solves formulas in DIMACS' format; built with PicoSAT. Arguments: files.

#include <ctype.h>
#include <stdio.h>

#include "picosat.h"

static int add_clauses(PicoSAT *solver, const char *name) {
    FILE *file = fopen(name, "r");
    int sign = 1, number = 0, is_inside = 0, letter;
    if (!file)
        return 0;
    while ((letter = getc(file)) != EOF) {
        if (isdigit(letter)) {
            number = 10 * number + letter - '0';
            is_inside = 1;
        } else if (letter == '-') {
            sign = -1;
        } else if (letter == 'c' || letter == 'p') {
            while (letter != '\n' && letter != EOF)
                letter = getc(file);
        } else if (is_inside) {
            picosat_add(solver, sign * number);
            sign = 1;
            number = is_inside = 0;
        }
    }
    return fclose(file) == 0;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        PicoSAT *solver = picosat_init();
        if (!add_clauses(solver, argv[i]))
            return 2;
        int answer = picosat_sat(solver, -1), held = 0;
        for (int k = 1; answer == PICOSAT_SATISFIABLE && k <= picosat_variables(solver); k++)
            held += picosat_deref(solver, k) > 0;
        printf("%s: %d %d\n", argv[i], answer, held);
        picosat_reset(solver);
    }
}
