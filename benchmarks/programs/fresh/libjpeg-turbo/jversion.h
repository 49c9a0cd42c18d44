// What libjpeg-turbo's CMake would write.
#define JCOPYRIGHT ""
#define JCOPYRIGHT_SHORT ""
#define JVERSION "6b"
