// Places the glyphs of each line of texts; built with HarfBuzz.
// Arguments: how often, a font and texts in UTF-8.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "hb.h"

static unsigned placed(hb_buffer_t *buffer) {
    unsigned count, sum = 0;
    const hb_glyph_info_t *infos = hb_buffer_get_glyph_infos(buffer, &count);
    const hb_glyph_position_t *places = hb_buffer_get_glyph_positions(buffer, &count);
    for (unsigned i = 0; i < count; i++)
        sum = sum * 31 + infos[i].codepoint + 7 * places[i].x_advance + places[i].x_offset;
    return sum + count;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    hb_blob_t *blob = hb_blob_create_from_file(argv[2]);
    hb_face_t *face = hb_face_create(blob, 0);
    hb_font_t *font = hb_font_create(face);
    hb_buffer_t *buffer = hb_buffer_create();
    std::vector<std::string> lines;
    for (int i = 3; i < argc; i++) {
        std::ifstream file(argv[i]);
        for (std::string line; std::getline(file, line);)
            lines.push_back(line);
    }
    unsigned sum = 0;
    for (int round = 0; round < atoi(argv[1]); round++)
        for (const std::string &line : lines) {
            hb_buffer_clear_contents(buffer);
            hb_buffer_add_utf8(buffer, line.data(), int(line.size()), 0, -1);
            hb_buffer_guess_segment_properties(buffer);
            hb_shape(font, buffer, nullptr, 0);
            sum = sum * 33 + placed(buffer);
        }
    printf("%zu lines, %08x\n", lines.size(), sum);
    hb_buffer_destroy(buffer);
    hb_font_destroy(font);
    hb_face_destroy(face);
    hb_blob_destroy(blob);
}
