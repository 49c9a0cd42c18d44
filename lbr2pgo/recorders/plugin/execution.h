// What QEMU calls as a block begins.

#ifndef LBR_EXECUTION_H
#define LBR_EXECUTION_H

#include "qemu_api.h"

block_executed block_begins;

// The same where call chains are wanted.
block_executed block_begins_with_calls;

// The program's own code begins.
block_executed program_begins;

// The function begins at which a start-up ends.
block_executed start_ends;

#endif
