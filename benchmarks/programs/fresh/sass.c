// Compiles a style sheet to CSS; built with libsass. Arguments: the file, and folders to import from.

#include <sass/context.h>
#include <stdio.h>

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    struct Sass_File_Context *file = sass_make_file_context(argv[1]);
    struct Sass_Context *context = sass_file_context_get_context(file);
    struct Sass_Options *options = sass_context_get_options(context);
    sass_option_set_precision(options, 10);
    for (int i = 2; i < argc; i++)
        sass_option_push_include_path(options, argv[i]);
    int failed = sass_compile_file_context(file);
    fputs(failed ? sass_context_get_error_message(context) : sass_context_get_output_string(context),
          failed ? stderr : stdout);
    sass_delete_file_context(file);
    return failed;
}
