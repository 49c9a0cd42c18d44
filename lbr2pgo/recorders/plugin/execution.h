// What QEMU calls as a block begins.

#ifndef LBR_EXECUTION_H
#define LBR_EXECUTION_H

#include "qemu_api.h"

block_executed block_begins;

// The same where more is wanted than last branches of all kinds, and call chains.
block_executed block_begins_in_full;

// The program's own code begins.
block_executed program_begins;

// The function begins at which a start-up ends.
block_executed start_ends;

#endif
