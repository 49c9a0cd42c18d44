// Reads YAML, looks at each value and writes it; built with yaml-cpp.
// Arguments: how often, and the files.

#include <cstdio>
#include <cstdlib>

#include "yaml-cpp/yaml.h"

static size_t weight(const YAML::Node &node) {
    size_t total = 1;
    if (node.IsMap())
        for (const auto &pair : node)
            total += pair.first.Scalar().size() + weight(pair.second);
    else if (node.IsSequence())
        for (const YAML::Node &each : node)
            total += weight(each);
    else if (node.IsScalar())
        total += node.Scalar().size() + size_t(node.as<double>(0));
    return total;
}

int main(int argc, char **argv) {
    size_t total = 0, written = 0;
    for (int round = 0; argc > 2 && round < atoi(argv[1]); round++)
        for (int i = 2; i < argc; i++)
            for (const YAML::Node &document : YAML::LoadAllFromFile(argv[i])) {
                YAML::Emitter out;
                out << document;
                total += weight(document);
                written += out.size();
            }
    printf("%zu, %zu bytes\n", total, written);
}
