// Lays pictures over each other, turned and through masks; built with pixman.
// Arguments: how often, the operator (as in pixman.h), the format below ("32", "16", "8" or
// "float"), the filter (n for nearest, b for bilinear, s for a separable convolution), the mask (0
// for none, e for even, r for radial shades, t for trapezoids, w for a conical sweep as the source),
// degrees to turn by, a scale in percent, and pictures (P6).

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "picture.h"
#include "pixman.h"

enum { WIDE = 640, HIGH = 480 };

static const double DEGREE = 3.14159265358979 / 180;
static const pixman_gradient_stop_t STOPS[] = {
    {0, {0xffff, 0x4000, 0, 0xffff}},
    {0x6000, {0, 0xc000, 0x2000, 0xa000}},
    {0x10000, {0x1000, 0, 0x3000, 0x3000}},
};

static pixman_image_t *source(const Picture *picture) {
    pixman_image_t *made = pixman_image_create_bits(PIXMAN_a8r8g8b8, (int)picture->width,
                                                    (int)picture->height, NULL, 0);
    uint32_t *to = pixman_image_get_data(made);
    const unsigned char *from = picture->pixels;
    for (size_t i = 0; i < (size_t)picture->width * picture->height; i++, from += 3) {
        unsigned alpha = from[0] > 200 ? 255 : from[1] < 60 ? 0 : from[2];
        to[i] = alpha << 24 | from[0] * alpha / 255 << 16 | from[1] * alpha / 255 << 8 |
                from[2] * alpha / 255;
    }
    return made;
}

static void turn(pixman_image_t *image, double degrees, double percent, char filter) {
    struct pixman_f_transform exact;
    struct pixman_transform rounded;
    double scale = 100 / percent;
    pixman_f_transform_init_rotate(&exact, cos(degrees * DEGREE), sin(degrees * DEGREE));
    pixman_f_transform_scale(&exact, NULL, scale, scale);
    pixman_transform_from_pixman_f_transform(&rounded, &exact);
    pixman_image_set_transform(image, &rounded);
    pixman_image_set_repeat(image, PIXMAN_REPEAT_REFLECT);
    if (filter != 's') {
        pixman_image_set_filter(image, filter == 'b' ? PIXMAN_FILTER_BILINEAR
                                                     : PIXMAN_FILTER_NEAREST, NULL, 0);
        return;
    }
    int number;
    pixman_fixed_t *values = pixman_filter_create_separable_convolution(
        &number, pixman_double_to_fixed(scale), pixman_double_to_fixed(scale),
        PIXMAN_KERNEL_LINEAR, PIXMAN_KERNEL_LINEAR, PIXMAN_KERNEL_BOX, PIXMAN_KERNEL_BOX, 2, 2);
    pixman_image_set_filter(image, PIXMAN_FILTER_SEPARABLE_CONVOLUTION, values, number);
    free(values);
}

static pixman_image_t *mask(char kind) {
    pixman_color_t half = {0, 0, 0, 0x9000};
    pixman_point_fixed_t middle = {pixman_int_to_fixed(WIDE / 2), pixman_int_to_fixed(HIGH / 2)};
    if (kind == 'e')
        return pixman_image_create_solid_fill(&half);
    if (kind == 'r')
        return pixman_image_create_radial_gradient(&middle, &middle, pixman_int_to_fixed(10),
                                                   pixman_int_to_fixed(300), STOPS, 3);
    if (kind != 't')
        return NULL;
    pixman_image_t *made = pixman_image_create_bits(PIXMAN_a8, WIDE, HIGH, NULL, 0);
    for (int i = 0; i < 60; i++) {
        pixman_fixed_t top = pixman_int_to_fixed(i * 37 % HIGH), left = pixman_int_to_fixed(i * 9);
        pixman_fixed_t wide = pixman_int_to_fixed(5 + i * 7 % 60), bottom = top + wide;
        pixman_trapezoid_t shape = {top, bottom, {{left, top}, {left + wide / 3, bottom}},
                                    {{left + wide, top}, {left + wide / 2, bottom}}};
        pixman_rasterize_trapezoid(made, &shape, 0, 0);
    }
    return made;
}

static pixman_format_code_t format(const char *name) {
    if (*name == 'f')
        return PIXMAN_rgba_float;
    int bits = atoi(name);
    return bits == 8 ? PIXMAN_a8 : bits == 16 ? PIXMAN_r5g6b5 : PIXMAN_a8r8g8b8;
}

int main(int argc, char **argv) {
    if (argc < 9)
        return 2;
    char kind = *argv[5];
    pixman_image_t *to = pixman_image_create_bits(format(argv[3]), WIDE, HIGH, NULL, 0);
    pixman_image_t *through = mask(kind), *shades = mask('r');
    pixman_image_composite32(PIXMAN_OP_SRC, shades, NULL, to, 0, 0, 0, 0, 0, 0, WIDE, HIGH);
    pixman_image_unref(shades);
    pixman_point_fixed_t middle = {pixman_int_to_fixed(WIDE / 3), pixman_int_to_fixed(HIGH / 2)};
    for (int i = 8; i < argc; i++) {
        Picture picture;
        if (!load(argv[i], &picture))
            return 2;
        pixman_image_t *from =
            kind == 'w' ? pixman_image_create_conical_gradient(&middle, 0, STOPS, 3)
                        : source(&picture);
        for (int round = 0; round < atoi(argv[1]); round++) {
            if (atoi(argv[6]) || atoi(argv[7]) != 100)
                turn(from, atoi(argv[6]) + round, atoi(argv[7]), *argv[4]);
            pixman_image_composite32((pixman_op_t)atoi(argv[2]), from, through, to, 0, 0, 0, 0,
                                     round % 5, round % 3, WIDE - 9, HIGH - 9);
        }
        pixman_image_unref(from);
        free(picture.pixels);
    }
    const unsigned char *bytes = (unsigned char *)pixman_image_get_data(to);
    unsigned sum = 0;
    for (int at = 0; at < pixman_image_get_stride(to) * HIGH; at++)
        sum = sum * 31 + bytes[at];
    printf("%08x\n", sum);
    if (through)
        pixman_image_unref(through);
    pixman_image_unref(to);
}
