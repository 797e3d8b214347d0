"""A timer wheel: which constraints are due at which iteration.

Varghese and Lauck (1987); the calendar queue of Brown (1988) with one iteration per day. Slot
t mod size is the head of a doubly linked list, whose links are three columns of `law`.
"""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel

# the longest wait, in iterations; as long as there are constraints, where there are more
WHEEL = 4096
LARGEST_WHEEL = 1 << 20  # but no longer than this
NEXT, PREVIOUS, SLOT = 3, 4, 5  # columns of `law`: whole numbers, -1 for none


def empty_slots(constraints: int, index: type) -> np.ndarray:
    longest = min(LARGEST_WHEEL, 1 << constraints.bit_length())
    return np.full(max(WHEEL, longest), -1, index)


@lean_kernel
def link(distribution, j, slot):
    law = distribution.law
    head = np.int64(distribution.heads[slot])
    law[j, NEXT] = head
    law[j, PREVIOUS] = -1.0
    law[j, SLOT] = slot
    if head >= 0:
        law[head, PREVIOUS] = j
    distribution.heads[slot] = j


@lean_kernel
def unlink(distribution, j):
    law = distribution.law
    slot = int(law[j, SLOT])
    if slot < 0:
        return
    following = int(law[j, NEXT])
    before = int(law[j, PREVIOUS])
    if before >= 0:
        law[before, NEXT] = following
    else:
        distribution.heads[slot] = following
    if following >= 0:
        law[following, PREVIOUS] = before
    law[j, SLOT] = -1.0
