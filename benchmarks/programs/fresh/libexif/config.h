/* What libexif would be told by its configure script. */
#define GETTEXT_PACKAGE "libexif"
