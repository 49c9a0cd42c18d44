// Parses sources in C and walks their trees; built with tree-sitter and its grammar of C.
// Arguments: how often, and the sources.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tree_sitter/api.h>

const TSLanguage *tree_sitter_c(void);

static size_t walk(TSTree *tree) {
    TSTreeCursor cursor = ts_tree_cursor_new(ts_tree_root_node(tree));
    size_t sum = 0;
    for (int is_done = 0; !is_done;) {
        TSNode node = ts_tree_cursor_current_node(&cursor);
        const char *field = ts_tree_cursor_current_field_name(&cursor);
        sum += ts_node_symbol(node) + ts_node_end_byte(node) + (field ? strlen(field) : 0);
        if (ts_tree_cursor_goto_first_child(&cursor))
            continue;
        while (!ts_tree_cursor_goto_next_sibling(&cursor) && !is_done)
            is_done = !ts_tree_cursor_goto_parent(&cursor);
    }
    ts_tree_cursor_delete(&cursor);
    return sum;
}

int main(int argc, char **argv) {
    static char text[1 << 20];
    TSParser *parser = ts_parser_new();
    size_t sum = 0;
    if (!ts_parser_set_language(parser, tree_sitter_c()))
        return 1;
    for (int round = 0; argc > 2 && round < atoi(argv[1]); round++)
        for (int i = 2; i < argc; i++) {
            FILE *file = fopen(argv[i], "rb");
            if (!file)
                return 2;
            size_t size = fread(text, 1, sizeof text, file);
            fclose(file);
            TSTree *tree = ts_parser_parse_string(parser, NULL, text, (uint32_t)size);
            sum += walk(tree);
            ts_tree_delete(tree);
        }
    ts_parser_delete(parser);
    printf("%zu\n", sum);
}
