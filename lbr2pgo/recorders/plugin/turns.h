// Turns of a process's threads: of all that could run one does, in an order that follows from what
// they do and not from the host's scheduler, so that runs are alike.

#ifndef LBR_TURNS_H
#define LBR_TURNS_H

#include <stdint.h>

extern int turns_are_taken;  // there are several threads

// A thread begins; threads go by their virtual processors.
void join_turns(unsigned thread, int32_t tid);

// It is about to run so many instructions: once its turn is over, others have theirs.
void take_turn(unsigned thread, uint32_t instructions);

// It enters the kernel, where it may sleep, or start a thread; and comes back, perhaps with that (0:
// none).
void turn_enters_kernel(unsigned thread, int starts_thread);
void turn_leaves_kernel(unsigned thread, int32_t new_thread);

void leave_turns(unsigned thread);

// Around fork; the child has one thread.
void turns_before_fork(void);
void turns_after_fork(void);
void turns_after_fork_in_child(unsigned thread, int32_t tid);

#endif
