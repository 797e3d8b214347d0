"""In which order the examples are visited: repeated random permutations, or independent draws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel


class ExampleOrder(NamedTuple):
    """`order` is being shuffled as it is read; `cursor[0]` is the place in it. An empty order means
    independent draws.
    """

    order: np.ndarray
    cursor: np.ndarray
    examples: int


def new_example_order(examples: int, independent: bool) -> ExampleOrder:
    kind = np.int32 if examples < 2**31 else np.int64
    order = np.zeros(0, kind) if independent else np.arange(examples, dtype=kind)
    return ExampleOrder(order, np.zeros(1, np.int64), examples)


@lean_kernel
def next_example(visits, rng):
    if visits.order.size == 0:
        return int(rng.random() * visits.examples)
    place = visits.cursor[0]
    chosen = place + int(rng.random() * (visits.examples - place))
    example = visits.order[chosen]
    visits.order[chosen] = visits.order[place]
    visits.order[place] = example
    visits.cursor[0] = place + 1 if place + 1 < visits.examples else 0
    return int(example)
