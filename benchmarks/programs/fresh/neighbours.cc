// Looks for the points that are next to others; built with ANN.
// Arguments: a seed, how many points, their dimensions, how many are asked for, of how many
// neighbours, the error that is allowed (percent), the tree (k, b, or 0 for none), points in a leaf,
// the search (s for standard, p for by priority, r for within a radius), and 1 for points in clouds.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "ANN/ANN.h"

static double chance(std::mt19937 &from) { return double(from()) / 4294967296.0; }

static ANNpointArray points(std::mt19937 &from, int number, int dimensions, bool in_clouds) {
    ANNpointArray made = annAllocPts(number, dimensions);
    for (int i = 0; i < number; i++)
        for (int d = 0; d < dimensions; d++)
            made[i][d] = in_clouds ? (i % 20 * 7 + d * 3) % 20 + chance(from) * chance(from)
                                   : chance(from) * 20;
    return made;
}

int main(int argc, char **argv) {
    if (argc != 11)
        return 2;
    std::mt19937 from(atoi(argv[1]));
    int number = atoi(argv[2]), dimensions = atoi(argv[3]), asked = atoi(argv[4]);
    int most = atoi(argv[5]), leaf = atoi(argv[8]);
    double error = atof(argv[6]) / 100, sum = 0;
    bool in_clouds = atoi(argv[10]);
    ANNpointArray known = points(from, number, dimensions, in_clouds);
    ANNpointArray others = points(from, asked, dimensions, in_clouds);
    std::unique_ptr<ANNpointSet> set;
    ANNkd_tree *tree = nullptr;
    if (*argv[7] == '0')
        set.reset(new ANNbruteForce(known, number, dimensions));
    else
        set.reset(tree = *argv[7] == 'b' ? new ANNbd_tree(known, number, dimensions, leaf)
                                         : new ANNkd_tree(known, number, dimensions, leaf));
    std::unique_ptr<ANNidx[]> which(new ANNidx[most]);
    std::unique_ptr<ANNdist[]> far(new ANNdist[most]);
    for (int i = 0; i < asked; i++) {
        int found = most;
        if (tree && *argv[9] == 'p')
            tree->annkPriSearch(others[i], most, which.get(), far.get(), error);
        else if (*argv[9] == 'r')
            found = set->annkFRSearch(others[i], 0.2 * dimensions, most, which.get(), far.get(),
                                      error);
        else
            set->annkSearch(others[i], most, which.get(), far.get(), error);
        for (int n = 0; n < found && n < most; n++)
            sum += std::sqrt(far[n]) * (n + 1) + which[n] % 7;
    }
    printf("%.9g\n", sum);
    set.reset();
    annDeallocPts(known);
    annDeallocPts(others);
    annClose();
}
