// Built twice, as two libraries that differ in COUNT.
#include "counted.h"

void library_work(void) { COUNTED_LOOP(in_library, COUNT); }
