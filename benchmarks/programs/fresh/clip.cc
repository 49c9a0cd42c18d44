// Cuts and widens made-up polygons; built with Clipper.
// Arguments: a seed, how often, corners, the clip's type (0 to 3), and the rule of filling (0 to 3).

#include <cstdio>
#include <cstdlib>

#include "clipper.hpp"

using namespace ClipperLib;

static Paths polygons(unsigned &seed, int count, int corners) {
    Paths made(count);
    for (Path &path : made)
        for (int i = 0; i < corners; i++) {
            seed = seed * 1103515245 + 12345;
            cInt x = seed >> 8 & 0xffff;
            seed = seed * 1103515245 + 12345;
            path << IntPoint(x, seed >> 8 & 0xffff);
        }
    return made;
}

int main(int argc, char **argv) {
    if (argc != 6)
        return 2;
    unsigned seed = atoi(argv[1]);
    double area = 0;
    size_t corners = 0;
    for (int i = 0; i < atoi(argv[2]); i++) {
        Clipper clipper;
        clipper.AddPaths(polygons(seed, 3, atoi(argv[3])), ptSubject, true);
        clipper.AddPaths(polygons(seed, 2, atoi(argv[3])), ptClip, true);
        Paths cut, widened;
        auto rule = PolyFillType(atoi(argv[5]));
        clipper.Execute(ClipType(atoi(argv[4])), cut, rule, rule);
        ClipperOffset offset;
        offset.AddPaths(cut, jtRound, etClosedPolygon);
        offset.Execute(widened, 100);
        for (const Path &path : widened) {
            area += Area(path);
            corners += path.size();
        }
    }
    printf("%.6g %zu\n", area, corners);
}
