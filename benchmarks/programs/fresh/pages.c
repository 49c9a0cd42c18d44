// Parses pages of HTML and finds elements in them; built with lexbor.
// Arguments: how often, one selector, and the pages.

#include <lexbor/css/css.h>
#include <lexbor/html/html.h>
#include <lexbor/selectors/selectors.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lxb_status_t count(lxb_dom_node_t *node, lxb_css_selector_specificity_t how, void *found) {
    ++*(size_t *)found;
    return LXB_STATUS_OK;
}

static lxb_status_t add_size(const lxb_char_t *data, size_t size, void *written) {
    *(size_t *)written += size;
    return LXB_STATUS_OK;
}

int main(int argc, char **argv) {
    static lxb_char_t text[1 << 20];
    size_t found = 0, written = 0;
    for (int round = 0; argc > 3 && round < atoi(argv[1]); round++)
        for (int i = 3; i < argc; i++) {
            FILE *file = fopen(argv[i], "rb");
            if (!file)
                return 2;
            size_t size = fread(text, 1, sizeof text, file);
            fclose(file);
            lxb_html_document_t *page = lxb_html_document_create();
            if (lxb_html_document_parse(page, text, size) != LXB_STATUS_OK)
                return 1;
            lxb_css_parser_t *parser = lxb_css_parser_create();
            lxb_selectors_t *selectors = lxb_selectors_create();
            if (lxb_css_parser_init(parser, NULL) != LXB_STATUS_OK ||
                lxb_selectors_init(selectors) != LXB_STATUS_OK)
                return 1;
            const lxb_char_t *wanted = (const lxb_char_t *)argv[2];
            lxb_css_selector_list_t *list = lxb_css_selectors_parse(parser, wanted, strlen(argv[2]));
            lxb_dom_node_t *root = lxb_dom_interface_node(page);
            if (!list || lxb_selectors_find(selectors, root, list, count, &found) != LXB_STATUS_OK)
                return 1;
            lxb_html_serialize_tree_cb(root, add_size, &written);
            lxb_selectors_destroy(selectors, true);
            lxb_css_selector_list_destroy_memory(list);
            lxb_css_parser_destroy(parser, true);
            lxb_html_document_destroy(page);
        }
    printf("%zu elements, %zu bytes\n", found, written);
}
