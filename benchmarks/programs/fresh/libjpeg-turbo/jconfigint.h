// What libjpeg-turbo's CMake would write for Linux of 64 bits.
#define BUILD ""
#define FALLTHROUGH __attribute__((fallthrough));
#define HAVE_BUILTIN_CTZL 1
#define INLINE inline __attribute__((always_inline))
#define PACKAGE_NAME "libjpeg-turbo"
#define SIZEOF_SIZE_T 8
#define THREAD_LOCAL __thread
#define VERSION "2.1.5"
