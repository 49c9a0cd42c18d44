// Reads formulas and reckons them for many values; built with muParser.
// Arguments: how often each is read, for how many values it is reckoned each time, 1 to have the
// library go over the values, and formulas of x, y and n.

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "muParser.h"

static double mixed(double a, double b) { return a * 0.75 + b * 0.25; }

static double sign(double a) { return a < 0 ? -1 : a > 0; }

static double kilo(double a) { return a * 1e3; }

static double of_all(mu::Parser &parser, std::vector<double> &x, std::vector<double> &y,
                     std::vector<double> &n, std::vector<double> &out) {
    parser.DefineVar("x", x.data());
    parser.DefineVar("y", y.data());
    parser.DefineVar("n", n.data());
    parser.Eval(out.data(), int(out.size()));
    double sum = 0;
    for (double each : out)
        sum += each;
    return sum;
}

static double of_each(mu::Parser &parser, const std::vector<double> &x,
                      const std::vector<double> &y, const std::vector<double> &n) {
    double at_x, at_y, at_n, sum = 0;
    parser.DefineVar("x", &at_x);
    parser.DefineVar("y", &at_y);
    parser.DefineVar("n", &at_n);
    for (size_t i = 0; i < x.size(); i++) {
        at_x = x[i], at_y = y[i], at_n = n[i];
        sum += parser.Eval();
    }
    return sum;
}

int main(int argc, char **argv) {
    if (argc < 5)
        return 2;
    size_t number = size_t(atoi(argv[2]));
    std::vector<double> x(number), y(number), n(number), out(number);
    for (size_t i = 0; i < number; i++)
        x[i] = double(i * 37 % 101) / 10 - 4, y[i] = double(i * 53 % 89) / 20 + 0.1, n[i] = i % 17;
    for (int i = 4; i < argc; i++) {
        double sum = 0;
        for (int round = 0; round < atoi(argv[1]); round++) {
            mu::Parser parser;
            parser.DefineFun("mixed", mixed);
            parser.DefineFun("signum", sign);
            parser.DefinePostfixOprt("k", kilo);
            parser.DefineConst("g", 9.81);
            parser.SetExpr(argv[i]);
            sum += atoi(argv[3]) ? of_all(parser, x, y, n, out) : of_each(parser, x, y, n);
        }
        printf("%.12g\n", sum);
    }
}
