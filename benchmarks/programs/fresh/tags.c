// Reads what cameras wrote beside pictures, tells each tag's value, and writes it again in another
// order of bytes; built with libexif.
// Arguments: how often, the order to write (I, M, or 0 to write nothing), 1 to leave out tags that
// are not known, and files (JPEG, or EXIF data alone).

#include <stdio.h>
#include <stdlib.h>

#include "libexif/exif-data.h"

static unsigned sum;

static void add(const char *text) {
    for (; text && *text; text++)
        sum = sum * 31 + (unsigned char)*text;
}

static void tell_entry(ExifEntry *entry, void *ifd) {
    char value[200];
    add(exif_tag_get_title_in_ifd(entry->tag, *(ExifIfd *)ifd));
    add(exif_entry_get_value(entry, value, sizeof value));
}

static void tell_content(ExifContent *content, void *unused) {
    (void)unused;
    ExifIfd ifd = exif_content_get_ifd(content);
    exif_content_foreach_entry(content, tell_entry, &ifd);
}

static void tell(ExifData *data) {
    char value[200];
    exif_data_foreach_content(data, tell_content, NULL);
    ExifMnoteData *notes = exif_data_get_mnote_data(data);
    for (unsigned i = 0; notes && i < exif_mnote_data_count(notes); i++) {
        add(exif_mnote_data_get_title(notes, i));
        add(exif_mnote_data_get_value(notes, i, value, sizeof value));
    }
}

int main(int argc, char **argv) {
    if (argc < 5)
        return 2;
    static unsigned char bytes[1 << 20];
    for (int i = 4; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file)
            return 2;
        unsigned size = (unsigned)fread(bytes, 1, sizeof bytes, file), written = 0;
        fclose(file);
        for (int round = 0; round < atoi(argv[1]); round++) {
            ExifData *data = exif_data_new();
            if (*argv[3] == '1')
                exif_data_set_option(data, EXIF_DATA_OPTION_IGNORE_UNKNOWN_TAGS);
            exif_data_load_data(data, bytes, size);
            tell(data);
            if (*argv[2] != '0') {
                unsigned char *out = NULL;
                exif_data_set_byte_order(data, *argv[2] == 'M' ? EXIF_BYTE_ORDER_MOTOROLA
                                                               : EXIF_BYTE_ORDER_INTEL);
                exif_data_save_data(data, &out, &written);
                for (unsigned at = 0; at < written; at += 8)
                    sum = sum * 31 + out[at];
                free(out);
            }
            exif_data_unref(data);
        }
        printf("%s: %u bytes, %08x\n", argv[i], written, sum);
    }
}
