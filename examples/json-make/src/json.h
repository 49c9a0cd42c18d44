// JSON in memory: reading, looking up and writing it.
#ifndef JSON_H
#define JSON_H

#include <stddef.h>
#include <stdio.h>

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_kind kind;
    double number;
    char *text;           // of a string: UTF-8, NUL behind it
    size_t length;        // bytes of a string, or number of items
    char **names;         // of an object's members
    struct json *items;   // of an array, or an object's values
};

struct json_error {
    size_t line;
    const char *what;
};

// Returns 0 and fills `value`, or -1 and fills `error`. `size` bytes are read.
int json_read(const char *bytes, size_t size, struct json *value, struct json_error *error);

// A member or item below `value`, by a path such as `orders.3.name`; NULL if there is none.
const struct json *json_find(const struct json *value, const char *path);

// `indent` < 0 writes everything on one line, without blanks.
void json_write(const struct json *value, int indent, FILE *file);

void json_free(struct json *value);

#endif
