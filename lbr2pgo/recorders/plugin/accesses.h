// Loads and stores of the guest, sampled as hardware does (PEBS, IBS, SPE), each with its address.

#ifndef LBR_ACCESSES_H
#define LBR_ACCESSES_H

#include "qemu_api.h"

// Has each memory access of a translated block seen when it happens.
void watch_accesses(struct qemu_plugin_tb *tb);

#endif
