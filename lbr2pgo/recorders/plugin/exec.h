// Following execve: the emulator would run a new program natively, so the plugin executes the
// emulator itself on it, with the same plugin. What can't be emulated is left to the real call.

#ifndef LBR_EXEC_H
#define LBR_EXEC_H

#include <stdint.h>

#include "emulator.h"

// The system call execve or execveat of the guest, about to happen. Copies are not freed: either
// the process becomes another, or the call fails, which is rare.
void follow_exec(const struct emulator *e, int64_t directory, uint64_t path, uint64_t arguments,
                 uint64_t environment, int32_t tid);

#endif
