/* What ODE would be told by its configure script, but for what the command line tells. */
#include <alloca.h>
#include <malloc.h>

#include "typedefs.h"
