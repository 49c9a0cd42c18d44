"""Strongly connected components of a graph, in the order in which LLVM finds them."""

import numpy as np

from libc.stdint cimport int64_t


def strong_components(const int64_t[::1] offsets, const int64_t[::1] targets):
    cdef Py_ssize_t size = offsets.shape[0] - 1
    cdef int64_t[::1] number = np.zeros(size, np.int64)  # of the visit; 0 before it
    cdef int64_t[::1] lowest = np.zeros(size, np.int64)
    cdef int64_t[::1] edge = np.zeros(size, np.int64)
    cdef int64_t[::1] visits = np.empty(size, np.int64)
    cdef int64_t[::1] waiting = np.empty(size, np.int64)
    cdef int64_t[::1] order = np.empty(size, np.int64)
    cdef int64_t[::1] component = np.empty(size, np.int64)
    cdef Py_ssize_t depth, open_nodes = 0, done = 0, visited = 0, components = 0, start
    cdef int64_t node, target
    with nogil:
        for start in range(size):
            if number[start]:
                continue
            depth = 0
            node = start
            while True:
                if number[node] == 0:
                    visited += 1
                    number[node] = lowest[node] = visited
                    edge[node] = offsets[node]
                    visits[depth], waiting[open_nodes] = node, node
                    depth += 1
                    open_nodes += 1
                if edge[node] < offsets[node + 1]:
                    target = targets[edge[node]]
                    edge[node] += 1
                    if number[target] == 0:
                        node = target
                    elif number[target] > 0:
                        lowest[node] = min(lowest[node], number[target])
                    continue
                depth -= 1
                if lowest[node] == number[node]:
                    while True:
                        open_nodes -= 1
                        target = waiting[open_nodes]
                        number[target] = -1  # in a component
                        order[done], component[done] = target, components
                        done += 1
                        if target == node:
                            break
                    components += 1
                if depth == 0:
                    break
                target = visits[depth - 1]
                if number[node] > 0:
                    lowest[target] = min(lowest[target], lowest[node])
                node = target
    return np.asarray(order), np.asarray(component)
