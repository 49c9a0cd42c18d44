// mini SCRIPT [N]: run a script; it finds N (default 1) in the global `n`.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "compiler.h"
#include "vm.h"

static int complain(const char *name, const std::string &what) {
    std::fprintf(stderr, "mini: %s: %s\n", name, what.c_str());
    return 1;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: mini SCRIPT [N]\n");
        return 2;
    }
    std::ifstream file(argv[1]);
    std::stringstream source;
    source << file.rdbuf();
    if (!file)
        return complain(argv[1], "can't be read");
    Heap heap;
    std::string error;
    const Function *script = compile(source.str(), heap, error);
    if (script == nullptr)
        return complain(argv[1], error);
    Vm vm(heap);
    vm.set_global("n", Value::of(argc > 2 ? std::atof(argv[2]) : 1.0));
    return vm.run(script) ? 0 : complain(argv[1], vm.error);
}
