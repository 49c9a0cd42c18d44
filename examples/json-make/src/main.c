// json [-c] [-r TIMES] FILE [PATH]: read JSON and write it again, or what stands at a path.
//
//   -c        on one line
//   -r TIMES  read and write it so often

#include <stdlib.h>
#include <unistd.h>

#include "json.h"

static char *read_file(const char *name, size_t *size) {
    FILE *file = fopen(name, "rb");
    if (!file)
        return NULL;
    size_t room = 1 << 16;
    char *bytes = malloc(room);
    *size = 0;
    while (bytes) {
        *size += fread(bytes + *size, 1, room - *size, file);
        if (*size < room)
            break;
        char *larger = realloc(bytes, room *= 2);
        if (!larger)
            free(bytes);
        bytes = larger;
    }
    fclose(file);
    return bytes;
}

static int once(const char *name, const char *bytes, size_t size, const char *path, int indent) {
    struct json value;
    struct json_error error;
    if (json_read(bytes, size, &value, &error)) {
        fprintf(stderr, "json: %s:%zu: %s\n", name, error.line, error.what);
        return 1;
    }
    const struct json *found = json_find(&value, path);
    if (found) {
        json_write(found, indent, stdout);
        putchar('\n');
    } else {
        fprintf(stderr, "json: %s: there is no %s\n", name, path);
    }
    json_free(&value);
    return found == NULL;
}

int main(int argc, char **argv) {
    int indent = 0, option, code = 0;
    long times = 1;
    while ((option = getopt(argc, argv, "cr:")) != -1) {
        if (option == '?')
            return 2;
        if (option == 'c')
            indent = -1;
        else
            times = atol(optarg);
    }
    if (optind == argc) {
        fprintf(stderr, "usage: json [-c] [-r TIMES] FILE [PATH]\n");
        return 2;
    }
    size_t size;
    char *bytes = read_file(argv[optind], &size);
    if (!bytes) {
        fprintf(stderr, "json: %s: can't be read\n", argv[optind]);
        return 1;
    }
    const char *path = optind + 1 < argc ? argv[optind + 1] : "";
    for (long i = 0; i < times && !code; i++)
        code = once(argv[optind], bytes, size, path, indent);
    free(bytes);
    return code;
}
