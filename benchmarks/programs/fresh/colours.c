// Converts pictures from one space of colours to another; built with Little CMS.
// Arguments: how often, the profiles from and to (files of ICC, or one of the words srgb, lab, xyz
// and grey), the intent, flags, the samples of a colour ("8", "16" or "float"), and pictures (P6).

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lcms2.h"
#include "picture.h"

static cmsHPROFILE space(const char *name) {
    cmsCIExyY white;
    cmsWhitePointFromTemp(&white, 5400);
    if (strcmp(name, "srgb") == 0)
        return cmsCreate_sRGBProfile();
    if (strcmp(name, "lab") == 0)
        return cmsCreateLab4Profile(&white);
    if (strcmp(name, "xyz") == 0)
        return cmsCreateXYZProfile();
    if (strcmp(name, "grey") != 0)
        return cmsOpenProfileFromFile(name, "r");
    cmsToneCurve *gamma = cmsBuildGamma(NULL, 2.2);
    cmsHPROFILE made = cmsCreateGrayProfile(&white, gamma);
    cmsFreeToneCurve(gamma);
    return made;
}

static unsigned format(cmsHPROFILE profile, const char *samples) {
    int is_float = strcmp(samples, "float") == 0;
    return cmsFormatterForColorspaceOfProfile(profile, is_float ? 4 : (unsigned)atoi(samples) / 8,
                                              is_float);
}

static size_t width(unsigned format) { return T_CHANNELS(format) * T_BYTES(format); }

int main(int argc, char **argv) {
    if (argc < 8)
        return 2;
    cmsHPROFILE rgb = cmsCreate_sRGBProfile(), from = space(argv[2]), to = space(argv[3]);
    if (!from || !to)
        return 2;
    unsigned read = format(from, argv[6]), written = format(to, argv[6]);
    // What the picture is in the space that it is to be converted from.
    cmsHTRANSFORM given = cmsCreateTransform(rgb, TYPE_RGB_8, from, read, 0, 0);
    unsigned sum = 0;
    for (int round = 0; round < atoi(argv[1]); round++) {
        cmsHTRANSFORM transform = cmsCreateTransform(from, read, to, written,
                                                     (unsigned)atoi(argv[4]),
                                                     (unsigned)atoi(argv[5]));
        if (!given || !transform)
            return 2;
        for (int i = 7; i < argc; i++) {
            Picture picture;
            if (!load(argv[i], &picture))
                return 2;
            unsigned char *in = malloc(picture.width * width(read));
            unsigned char *out = malloc(picture.width * width(written));
            for (unsigned y = 0; y < picture.height; y++) {
                cmsDoTransform(given, picture.pixels + (size_t)y * picture.width * 3, in,
                               picture.width);
                cmsDoTransform(transform, in, out, picture.width);
                for (size_t at = 0; at < picture.width * width(written); at += 7)
                    sum = sum * 31 + out[at];
            }
            free(in);
            free(out);
            free(picture.pixels);
        }
        cmsDeleteTransform(transform);
    }
    printf("%u to %u: %08x\n", T_COLORSPACE(read), T_COLORSPACE(written), sum);
    cmsDeleteTransform(given);
    cmsCloseProfile(to);
    cmsCloseProfile(from);
    cmsCloseProfile(rgb);
}
