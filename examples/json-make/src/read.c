#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

enum { MAX_DEPTH = 200 };

struct reader {
    const char *at, *end;
    size_t line;
    const char *error;
    int depth;
};

static int fail(struct reader *r, const char *what) {
    if (!r->error)
        r->error = what;
    return -1;
}

static void skip_blanks(struct reader *r) {
    for (; r->at < r->end; r->at++) {
        if (*r->at == '\n')
            r->line++;
        else if (*r->at != ' ' && *r->at != '\t' && *r->at != '\r')
            return;
    }
}

static int peek(const struct reader *r) {
    if (r->at == r->end)
        return -1;
    return (unsigned char)*r->at;
}

static int take(struct reader *r, char wanted) {
    skip_blanks(r);
    if (peek(r) != wanted)
        return 0;
    r->at++;
    return 1;
}

struct buffer {
    char *bytes;
    size_t length, room;
};

static int append(struct buffer *b, char byte) {
    if (b->length == b->room) {
        size_t room = b->room ? b->room * 2 : 16;
        char *bytes = realloc(b->bytes, room);
        if (!bytes)
            return -1;
        b->bytes = bytes;
        b->room = room;
    }
    b->bytes[b->length++] = byte;
    return 0;
}

static int append_utf8(struct buffer *b, uint32_t c) {
    if (c < 0x80)
        return append(b, (char)c);
    if (c < 0x800)
        return append(b, (char)(0xc0 | c >> 6)) || append(b, (char)(0x80 | (c & 0x3f)));
    if (c < 0x10000)
        return append(b, (char)(0xe0 | c >> 12)) || append(b, (char)(0x80 | (c >> 6 & 0x3f))) ||
               append(b, (char)(0x80 | (c & 0x3f)));
    return append(b, (char)(0xf0 | c >> 18)) || append(b, (char)(0x80 | (c >> 12 & 0x3f))) ||
           append(b, (char)(0x80 | (c >> 6 & 0x3f))) || append(b, (char)(0x80 | (c & 0x3f)));
}

static int hex_digit(int c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static int read_hex(struct reader *r, uint32_t *value) {
    *value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(peek(r));
        if (digit < 0)
            return fail(r, "\\u needs four hexadecimal digits");
        *value = *value << 4 | (uint32_t)digit;
        r->at++;
    }
    return 0;
}

static int read_unicode(struct reader *r, struct buffer *b) {
    uint32_t c, low;
    if (read_hex(r, &c))
        return -1;
    if (c >= 0xdc00 && c < 0xe000)
        return fail(r, "half a surrogate pair");
    if (c >= 0xd800 && c < 0xdc00) {
        if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
            return fail(r, "half a surrogate pair");
        r->at += 2;
        if (read_hex(r, &low))
            return -1;
        if (low < 0xdc00 || low >= 0xe000)
            return fail(r, "half a surrogate pair");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    return append_utf8(b, c) ? fail(r, "out of memory") : 0;
}

static int read_escape(struct reader *r, struct buffer *b) {
    int c = peek(r);
    r->at++;
    switch (c) {
    case '"': case '\\': case '/': break;
    case 'b': c = '\b'; break;
    case 'f': c = '\f'; break;
    case 'n': c = '\n'; break;
    case 'r': c = '\r'; break;
    case 't': c = '\t'; break;
    case 'u': return read_unicode(r, b);
    default: r->at--; return fail(r, "unknown escape");
    }
    return append(b, (char)c) ? fail(r, "out of memory") : 0;
}

static int read_characters(struct reader *r, struct buffer *b) {
    for (;;) {
        int c = peek(r);
        if (c < 0)
            return fail(r, "a string has no end");
        if (c < 0x20)
            return fail(r, "a control character in a string");
        r->at++;
        if (c == '"')
            return append(b, '\0') ? fail(r, "out of memory") : 0;
        if (c == '\\') {
            if (read_escape(r, b))
                return -1;
        } else if (append(b, (char)c)) {
            return fail(r, "out of memory");
        }
    }
}

static char *read_text(struct reader *r, size_t *length) {
    struct buffer b = {0};
    if (read_characters(r, &b)) {
        free(b.bytes);
        return NULL;
    }
    *length = b.length - 1;
    return b.bytes;
}

static int digits(struct reader *r) {
    const char *start = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return r->at > start;
}

static int read_number(struct reader *r, struct json *value) {
    char text[64];
    const char *start = r->at;
    if (peek(r) == '-')
        r->at++;
    int begins_with_zero = peek(r) == '0';
    const char *whole = r->at;
    if (!digits(r) || (begins_with_zero && r->at - whole > 1))
        return fail(r, "a number is malformed");
    int is_whole = 1;
    if (peek(r) == '.') {
        r->at++;
        is_whole = 0;
        if (!digits(r))
            return fail(r, "a number is malformed");
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        r->at++;
        is_whole = 0;
        if (peek(r) == '+' || peek(r) == '-')
            r->at++;
        if (!digits(r))
            return fail(r, "a number is malformed");
    }
    size_t size = (size_t)(r->at - start);
    value->kind = JSON_NUMBER;
    if (is_whole && size < 16) {
        int64_t total = 0;
        for (const char *c = whole; c < r->at; c++)
            total = total * 10 + (*c - '0');
        value->number = (double)(whole > start ? -total : total);
        return 0;
    }
    if (size >= sizeof text)
        return fail(r, "a number is too long");
    memcpy(text, start, size);
    text[size] = '\0';
    value->number = strtod(text, NULL);
    return 0;
}

static int read_word(struct reader *r, const char *word, enum json_kind kind, struct json *value) {
    size_t size = strlen(word);
    if ((size_t)(r->end - r->at) < size || memcmp(r->at, word, size))
        return fail(r, "an unknown word");
    r->at += size;
    value->kind = kind;
    return 0;
}

static int read_value(struct reader *r, struct json *value);

// Room for one more item; the new one is null.
static int grow(struct json *list) {
    size_t n = list->length;
    if ((n & (n - 1)) == 0) {
        size_t room = n ? n * 2 : 1;
        struct json *items = realloc(list->items, room * sizeof *items);
        if (!items)
            return -1;
        list->items = items;
        if (list->kind == JSON_OBJECT) {
            char **names = realloc(list->names, room * sizeof *names);
            if (!names)
                return -1;
            list->names = names;
        }
    }
    memset(&list->items[n], 0, sizeof list->items[n]);
    if (list->kind == JSON_OBJECT)
        list->names[n] = NULL;
    list->length++;
    return 0;
}

static int read_member(struct reader *r, struct json *object) {
    if (object->kind == JSON_OBJECT) {
        size_t length;
        if (!take(r, '"'))
            return fail(r, "expected a name");
        char **name = &object->names[object->length - 1];
        *name = read_text(r, &length);
        if (!*name)
            return -1;
        if (!take(r, ':'))
            return fail(r, "expected a colon");
    }
    return read_value(r, &object->items[object->length - 1]);
}

static int read_items(struct reader *r, struct json *list, char close) {
    if (++r->depth > MAX_DEPTH)
        return fail(r, "it nests too deep");
    if (!take(r, close)) {
        do {
            if (grow(list))
                return fail(r, "out of memory");
            if (read_member(r, list))
                return -1;
        } while (take(r, ','));
        if (!take(r, close))
            return fail(r, "expected a comma or the end of a list");
    }
    r->depth--;
    return 0;
}

static int read_value(struct reader *r, struct json *value) {
    skip_blanks(r);
    switch (peek(r)) {
    case '{': r->at++; value->kind = JSON_OBJECT; return read_items(r, value, '}');
    case '[': r->at++; value->kind = JSON_ARRAY; return read_items(r, value, ']');
    case '"':
        r->at++;
        value->kind = JSON_STRING;
        value->text = read_text(r, &value->length);
        return value->text ? 0 : -1;
    case 't': return read_word(r, "true", JSON_TRUE, value);
    case 'f': return read_word(r, "false", JSON_FALSE, value);
    case 'n': return read_word(r, "null", JSON_NULL, value);
    case -1: return fail(r, "it ends too early");
    default: return read_number(r, value);
    }
}

int json_read(const char *bytes, size_t size, struct json *value, struct json_error *error) {
    struct reader r = {bytes, bytes + size, 1, NULL, 0};
    memset(value, 0, sizeof *value);
    int code = read_value(&r, value);
    skip_blanks(&r);
    if (!code && r.at < r.end)
        code = fail(&r, "something stands behind the end");
    if (code) {
        *error = (struct json_error){r.line, r.error};
        json_free(value);
    }
    return code;
}
