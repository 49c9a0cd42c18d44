/* What libexif would be told by its configure script of types. */
#include <stdint.h>
