/* What FriBidi would be told by its configure script. */
#define HAVE_MEMORY_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRDUP 1
#define HAVE_STRINGIZE 1
#define HAVE_STRINGS_H 1
#define HAVE_STRING_H 1
#define STDC_HEADERS 1
