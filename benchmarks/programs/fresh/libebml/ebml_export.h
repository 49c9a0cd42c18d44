/* What libebml would be told by CMake: nothing is exported. */
#define EBML_DLL_API
