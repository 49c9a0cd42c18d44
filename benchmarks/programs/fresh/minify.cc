// Parses JSON, sums its numbers and writes it without spaces; built with simdjson.
// Arguments: how often, and the files.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "simdjson.h"

using namespace simdjson;

static double sum(dom::element value) {
    double total = 0;
    switch (value.type()) {
    case dom::element_type::ARRAY:
        for (dom::element each : dom::array(value))
            total += sum(each);
        return total;
    case dom::element_type::OBJECT:
        for (dom::key_value_pair each : dom::object(value))
            total += sum(each.value) + each.key.size();
        return total;
    case dom::element_type::STRING:
        return std::string_view(value).size();
    case dom::element_type::INT64:
    case dom::element_type::UINT64:
    case dom::element_type::DOUBLE:
        return double(value);
    default:
        return 1;
    }
}

int main(int argc, char **argv) {
    dom::parser parser;
    double total = 0;
    size_t written = 0;
    for (int round = 0; argc > 2 && round < atoi(argv[1]); round++)
        for (int i = 2; i < argc; i++) {
            dom::element found;
            if (parser.load(argv[i]).get(found))
                return 2;
            total += sum(found);
            written += minify(found).size();
        }
    printf("%.6g, %zu bytes\n", total, written);
}
