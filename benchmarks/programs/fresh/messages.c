// Reads messages of HTTP one after another, in pieces, and the parts of their addresses; built with
// http-parser.
// Arguments: how often, the most bytes of a piece, what the messages are ("q": requests, "s":
// responses, "b": either), 1 to allow what is not strictly allowed, and files.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http_parser.h"

static unsigned sum, messages, parts;
static char address[1 << 14];
static size_t address_size;

static int add(http_parser *parser, const char *at, size_t size) {
    (void)parser;
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + (unsigned char)at[i];
    parts++;
    return 0;
}

static int add_address(http_parser *parser, const char *at, size_t size) {
    if (address_size + size < sizeof address) {
        memcpy(address + address_size, at, size);
        address_size += size;
    }
    return add(parser, at, size < 8 ? size : 8);
}

static int add_body(http_parser *parser, const char *at, size_t size) {
    return add(parser, at, size < 16 ? size : 16);
}

static int end_head(http_parser *parser) {
    struct http_parser_url url;
    http_parser_url_init(&url);
    if (address_size &&
        !http_parser_parse_url(address, address_size, parser->method == HTTP_CONNECT, &url))
        for (int i = 0; i < UF_MAX; i++)
            sum += url.field_data[i].len * (unsigned)(i + 1) * (url.field_set >> i & 1);
    sum += url.port + parser->status_code + (unsigned)http_should_keep_alive(parser);
    address_size = 0;
    return 0;
}

static int end_message(http_parser *parser) {
    messages++;
    sum += parser->method + parser->http_minor;
    return 0;
}

static void parse(const char *bytes, size_t size, size_t most, enum http_parser_type type,
                  unsigned lenient) {
    const http_parser_settings settings = {
        .on_url = add_address, .on_status = add, .on_header_field = add, .on_header_value = add,
        .on_headers_complete = end_head, .on_body = add_body, .on_message_complete = end_message,
    };
    http_parser parser;
    http_parser_init(&parser, type);
    parser.lenient_http_headers = lenient;
    for (size_t at = 0; at < size;) {
        size_t piece = size - at < most ? size - at : most;
        size_t done = http_parser_execute(&parser, &settings, bytes + at, piece);
        at += done;
        if (parser.upgrade || done < piece) { // What is refused is left until the next line.
            sum += HTTP_PARSER_ERRNO(&parser);
            const char *next = parser.upgrade ? NULL : memchr(bytes + at, '\n', size - at);
            at = next ? (size_t)(next - bytes) + 1 : parser.upgrade ? at : size;
            http_parser_init(&parser, type);
            parser.lenient_http_headers = lenient;
        }
    }
    http_parser_execute(&parser, &settings, bytes, 0);
}

int main(int argc, char **argv) {
    static char bytes[1 << 25];
    if (argc < 6 || atoi(argv[2]) < 1)
        return 2;
    enum http_parser_type type = *argv[3] == 'q'   ? HTTP_REQUEST
                                 : *argv[3] == 's' ? HTTP_RESPONSE
                                                   : HTTP_BOTH;
    for (int i = 5; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file)
            return 2;
        size_t size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        for (int round = 0; round < atoi(argv[1]); round++)
            parse(bytes, size, (size_t)atoi(argv[2]), type, (unsigned)atoi(argv[4]));
    }
    printf("%u messages of %u parts, %08x\n", messages, parts, sum);
}
