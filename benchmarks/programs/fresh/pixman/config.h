/* What pixman would be told by its configure script. */
#define PACKAGE "pixman"
#define SIZEOF_LONG 8
#define TLS __thread
#define HAVE_BUILTIN_CLZ 1
#define HAVE_GCC_VECTOR_EXTENSIONS 1
#define TOOLCHAIN_SUPPORTS_ATTRIBUTE_CONSTRUCTOR 1
