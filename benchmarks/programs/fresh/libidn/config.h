/* What GNU Libidn would be told by its configure script. */
#define ENABLE_NLS 0
#define LOCALEDIR ""
#define PACKAGE "libidn"
#define VERSION "1.41"
#define _GL_ATTRIBUTE_DEALLOC_FREE
#define _GL_ATTRIBUTE_FALLTHROUGH __attribute__((__fallthrough__))
#define _GL_ATTRIBUTE_MALLOC
#define _GL_ATTRIBUTE_PURE
#define _GL_CMP(n1, n2) (((n1) > (n2)) - ((n1) < (n2)))
#define _GL_EXTERN_INLINE extern inline
#define _GL_INLINE inline
#define _GL_INLINE_HEADER_BEGIN
#define _GL_INLINE_HEADER_END
