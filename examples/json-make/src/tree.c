#include <stdlib.h>
#include <string.h>

#include "json.h"

static const struct json *member(const struct json *object, const char *name, size_t size) {
    for (size_t i = 0; i < object->length; i++)
        if (!strncmp(object->names[i], name, size) && object->names[i][size] == '\0')
            return &object->items[i];
    return NULL;
}

static const struct json *item(const struct json *array, const char *number) {
    char *end;
    unsigned long at = strtoul(number, &end, 10);
    if (end == number || (*end != '.' && *end != '\0'))
        return NULL;
    return at < array->length ? &array->items[at] : NULL;
}

const struct json *json_find(const struct json *value, const char *path) {
    while (value && *path) {
        size_t size = strcspn(path, ".");
        if (value->kind == JSON_OBJECT)
            value = member(value, path, size);
        else if (value->kind == JSON_ARRAY)
            value = item(value, path);
        else
            return NULL;
        path += size + (path[size] == '.');
    }
    return value;
}

void json_free(struct json *value) {
    if (value->kind == JSON_STRING)
        free(value->text);
    if (value->kind == JSON_ARRAY || value->kind == JSON_OBJECT) {
        for (size_t i = 0; i < value->length; i++) {
            json_free(&value->items[i]);
            if (value->kind == JSON_OBJECT)
                free(value->names[i]);
        }
        free(value->names);
        free(value->items);
    }
    memset(value, 0, sizeof *value);
}
