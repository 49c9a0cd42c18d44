#include "unistr.in.h"
