// A picture in memory, and how one is read (P6).

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    unsigned char *pixels;
    unsigned width, height;
} Picture;

static int load(const char *name, Picture *out) {
    FILE *file = fopen(name, "rb");
    if (!file || fscanf(file, "P6 %u %u 255", &out->width, &out->height) != 2)
        return 0;
    size_t size = (size_t)out->width * out->height * 3;
    out->pixels = (unsigned char *)malloc(size);
    int is_whole = getc(file) != EOF && fread(out->pixels, 1, size, file) == size;
    return fclose(file) == 0 && is_whole;
}
