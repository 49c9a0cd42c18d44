// Compresses pictures and takes them out again; built with libjpeg-turbo.
// Arguments: how often, quality, sampling of luma (1 or 2), 1 to write by steps, eighths of the
// size to take out, and files (P6).

#include <stdio.h>
#include <stdlib.h>

#include "jpeglib.h"
#include "picture.h"

typedef struct {
    unsigned char *bytes;
    unsigned long size;
} Compressed;

static Compressed compress(Picture picture, int quality, int sampling, int by_steps) {
    struct jpeg_compress_struct state;
    struct jpeg_error_mgr errors;
    Compressed out = {0};
    state.err = jpeg_std_error(&errors);
    jpeg_create_compress(&state);
    jpeg_mem_dest(&state, &out.bytes, &out.size);
    state.image_width = picture.width;
    state.image_height = picture.height;
    state.input_components = 3;
    state.in_color_space = JCS_RGB;
    jpeg_set_defaults(&state);
    jpeg_set_quality(&state, quality, TRUE);
    state.comp_info[0].h_samp_factor = state.comp_info[0].v_samp_factor = sampling;
    if (by_steps)
        jpeg_simple_progression(&state);
    jpeg_start_compress(&state, TRUE);
    while (state.next_scanline < state.image_height) {
        JSAMPROW row = picture.pixels + (size_t)state.next_scanline * picture.width * 3;
        jpeg_write_scanlines(&state, &row, 1);
    }
    jpeg_finish_compress(&state);
    jpeg_destroy_compress(&state);
    return out;
}

static unsigned decompress(Compressed in, int eighths) {
    struct jpeg_decompress_struct state;
    struct jpeg_error_mgr errors;
    unsigned sum = 0;
    state.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&state);
    jpeg_mem_src(&state, in.bytes, in.size);
    jpeg_read_header(&state, TRUE);
    state.scale_num = eighths;
    state.scale_denom = 8;
    jpeg_start_decompress(&state);
    size_t size = state.output_width * state.output_components;
    JSAMPROW row = malloc(size);
    while (state.output_scanline < state.output_height) {
        jpeg_read_scanlines(&state, &row, 1);
        for (size_t i = 0; i < size; i += 16)
            sum = sum * 31 + row[i];
    }
    free(row);
    jpeg_finish_decompress(&state);
    jpeg_destroy_decompress(&state);
    return sum;
}

int main(int argc, char **argv) {
    for (int i = 6; i < argc; i++) {
        Picture picture;
        if (!load(argv[i], &picture))
            return 2;
        for (int round = 0; round < atoi(argv[1]); round++) {
            Compressed made = compress(picture, atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
            unsigned sum = decompress(made, atoi(argv[5]));
            if (round == 0)
                printf("%s: %lu bytes, %08x\n", argv[i], made.size, sum);
            free(made.bytes);
        }
        free(picture.pixels);
    }
}
