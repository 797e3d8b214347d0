"""What is to be known of many dense rows, in one pass over them."""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel


@lean_kernel
def sizes_and_entries(rows: np.ndarray, sizes: np.ndarray, entries: np.ndarray) -> None:
    """The largest absolute entry of every row, and how many are not 0."""
    whole = rows.shape[1] - rows.shape[1] % 4
    for i in range(rows.shape[0]):
        row = rows[i]
        m0 = m1 = m2 = m3 = 0.0  # four at a time: one maximum waits for the one before it
        count = 0
        for j in range(0, whole, 4):
            m0 = max(m0, abs(row[j]))
            m1 = max(m1, abs(row[j + 1]))
            m2 = max(m2, abs(row[j + 2]))
            m3 = max(m3, abs(row[j + 3]))
        for j in range(whole, row.size):
            m0 = max(m0, abs(row[j]))
        for j in range(row.size):
            count += row[j] != 0.0
        sizes[i] = max(m0, m1, m2, m3)
        entries[i] = count
