// Reads layouts of chips, puts their parts where they belong, and looks for shapes and texts; built
// with libGDSII.
// Arguments: how often, the layer (-1: each), around how many texts of a layer shapes are looked
// for, 1 to describe what was read, and files.

#include <cstdio>
#include <cstdlib>

#include "libGDSII.h"

using namespace libGDSII;

int main(int argc, char **argv) {
    if (argc < 6)
        return 2;
    size_t shapes = 0, texts = 0, around = 0;
    double sum = 0;
    for (int i = 5; i < argc; i++)
        for (int round = 0; round < atoi(argv[1]); round++) {
            GDSIIData data{std::string(argv[i])};
            if (data.ErrMsg)
                return 2;
            for (int layer : data.GetLayers()) {
                if (atoi(argv[2]) != -1 && atoi(argv[2]) != layer)
                    continue;
                PolygonList polygons = data.GetPolygons(layer);
                shapes += polygons.size();
                for (const dVec &polygon : polygons)
                    sum += polygon[0] * layer - polygon[1];
                TextStringList names = data.GetTextStrings(layer);
                texts += names.size();
                for (size_t name = 0; name < names.size() && name < strtoul(argv[3], 0, 10); name++)
                    around += data.GetPolygons(names[name].Text, layer).size();
            }
            if (atoi(argv[4]))
                data.WriteDescription("/dev/null");
        }
    printf("%zu shapes, %zu texts in %zu, %.6g\n", shapes, texts, around, sum);
}
