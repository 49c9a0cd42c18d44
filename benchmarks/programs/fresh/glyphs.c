// Draws the glyphs of fonts; built with FreeType.
// Arguments: n for outlines hinted by the font, a for hinted by FreeType, u for unhinted and m for
// black and white; the lowest and the highest size, in pixels; and the fonts.

#include <ft2build.h>
#include <stdio.h>
#include <stdlib.h>
#include FT_FREETYPE_H

static FT_Int32 flags(char mode) {
    switch (mode) {
    case 'a':
        return FT_LOAD_RENDER | FT_LOAD_FORCE_AUTOHINT | FT_LOAD_TARGET_LIGHT;
    case 'u':
        return FT_LOAD_RENDER | FT_LOAD_NO_HINTING;
    case 'm':
        return FT_LOAD_RENDER | FT_LOAD_TARGET_MONO;
    default:
        return FT_LOAD_RENDER;
    }
}

static unsigned draw(FT_GlyphSlot glyph) {
    const FT_Bitmap *bitmap = &glyph->bitmap;
    unsigned sum = glyph->advance.x;
    for (unsigned y = 0; y < bitmap->rows; y++)
        for (unsigned x = 0; x < (unsigned)abs(bitmap->pitch); x++)
            sum = sum * 31 + bitmap->buffer[y * bitmap->pitch + x];
    return sum;
}

int main(int argc, char **argv) {
    FT_Library library;
    if (argc < 5 || FT_Init_FreeType(&library))
        return 2;
    for (int i = 4; i < argc; i++) {
        FT_Face face;
        unsigned sum = 0;
        long drawn = 0;
        if (FT_New_Face(library, argv[i], 0, &face))
            return 2;
        for (int size = atoi(argv[2]); size <= atoi(argv[3]); size++) {
            FT_Set_Pixel_Sizes(face, 0, size);
            for (FT_Long index = 0; index < face->num_glyphs; index++)
                if (FT_Load_Glyph(face, index, flags(*argv[1])) == 0) {
                    sum = sum * 33 + draw(face->glyph);
                    drawn++;
                }
        }
        printf("%s: %ld glyphs, %08x\n", argv[i], drawn, sum);
        FT_Done_Face(face);
    }
    FT_Done_FreeType(library);
}
