#include "unitypes.in.h"
