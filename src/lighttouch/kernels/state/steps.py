"""The numbers of the paper's algorithms as one flat record, and the length of a step."""

from __future__ import annotations

import math
from typing import NamedTuple

from lighttouch.kernels.compiler.compiled import lean_kernel

CONSTANT, INVERSE_SQRT, INVERSE_TIME, ADAGRAD = 0, 1, 2, 3


class Steps(NamedTuple):
    """What an iteration is told, in the paper's letters where it has one.

    Numbers only: a loop reads them from registers, where a record within a record would cost half
    its time again.
    """

    rule: int  # how eta^(t) depends on t
    eta: float
    batch: int  # k_f, examples per iteration (fixed, except in Algorithm 4)
    l2: float  # the objective's ridge term
    penalty: float  # gamma
    weight_step: float  # eta_p
    looks: int  # k, constraints in S^(t) (Algorithms 2 and 3)


@lean_kernel
def step_length(rule, eta, t):
    """eta^(t); AdaGrad divides by its own roots, coordinate by coordinate, later."""
    if rule == INVERSE_SQRT:
        return eta / math.sqrt(t)
    if rule == INVERSE_TIME:
        return eta / t
    return eta
