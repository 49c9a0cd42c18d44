#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

// stdio takes a lock for each character: collect them here first.
struct output {
    FILE *file;
    size_t used;
    char bytes[4096];
};

static void flush(struct output *out) {
    fwrite(out->bytes, 1, out->used, out->file);
    out->used = 0;
}

static void put(struct output *out, char c) {
    if (out->used == sizeof out->bytes)
        flush(out);
    out->bytes[out->used++] = c;
}

static void put_word(struct output *out, const char *word) {
    while (*word)
        put(out, *word++);
}

static void write_value(const struct json *value, int indent, struct output *out);

static void write_text(const char *text, size_t length, struct output *out) {
    put(out, '"');
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        switch (c) {
        case '"': put_word(out, "\\\""); break;
        case '\\': put_word(out, "\\\\"); break;
        case '\n': put_word(out, "\\n"); break;
        case '\t': put_word(out, "\\t"); break;
        case '\r': put_word(out, "\\r"); break;
        default:
            if (c < 0x20) {
                char escape[8];
                snprintf(escape, sizeof escape, "\\u%04x", c);
                put_word(out, escape);
            } else {
                put(out, (char)c);
            }
        }
    }
    put(out, '"');
}

static void write_number(double number, struct output *out) {
    char digits[24];
    int n = 0;
    if (number != floor(number) || fabs(number) >= 1e15) {
        char text[32];
        snprintf(text, sizeof text, "%.15g", number);
        if (strtod(text, NULL) != number)
            snprintf(text, sizeof text, "%.17g", number);
        put_word(out, text);
        return;
    }
    if (number < 0)
        put(out, '-');
    unsigned long long rest = (unsigned long long)fabs(number);
    do {
        digits[n++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    while (n)
        put(out, digits[--n]);
}

static void new_line(int indent, struct output *out) {
    if (indent < 0)
        return;
    put(out, '\n');
    for (int i = 0; i < indent; i++)
        put(out, ' ');
}

static void write_items(const struct json *list, int indent, struct output *out) {
    int inner = indent < 0 ? indent : indent + 2;
    put(out, list->kind == JSON_OBJECT ? '{' : '[');
    for (size_t i = 0; i < list->length; i++) {
        if (i)
            put(out, ',');
        new_line(inner, out);
        if (list->kind == JSON_OBJECT) {
            write_text(list->names[i], strlen(list->names[i]), out);
            put(out, ':');
            if (indent >= 0)
                put(out, ' ');
        }
        write_value(&list->items[i], inner, out);
    }
    if (list->length)
        new_line(indent, out);
    put(out, list->kind == JSON_OBJECT ? '}' : ']');
}

static void write_value(const struct json *value, int indent, struct output *out) {
    switch (value->kind) {
    case JSON_NULL: put_word(out, "null"); break;
    case JSON_FALSE: put_word(out, "false"); break;
    case JSON_TRUE: put_word(out, "true"); break;
    case JSON_NUMBER: write_number(value->number, out); break;
    case JSON_STRING: write_text(value->text, value->length, out); break;
    case JSON_ARRAY:
    case JSON_OBJECT: write_items(value, indent, out); break;
    }
}

void json_write(const struct json *value, int indent, FILE *file) {
    struct output out = {.file = file};
    write_value(value, indent, &out);
    flush(&out);
}
