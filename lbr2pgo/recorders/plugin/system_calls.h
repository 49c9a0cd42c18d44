// The guest's system calls: they map code, execute programs, end threads and set handlers.

#ifndef LBR_SYSTEM_CALLS_H
#define LBR_SYSTEM_CALLS_H

#include "qemu_api.h"

system_call before_call;
system_call_returned after_call;

#endif
