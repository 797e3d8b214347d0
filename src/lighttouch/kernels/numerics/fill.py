"""How many entries the factor of a sparse symmetric matrix has, without factoring it."""

from __future__ import annotations

from lighttouch.kernels.compiler.compiled import lean_kernel


@lean_kernel
def factor_counts(indptr, indices, most, counts, parent, work):
    """Entries below the diagonal of every column of Cholesky's factor of a matrix with this
    pattern, in this order, written to `counts`; stops once they are more than `most` in all.
    Returns how many there are. `parent` and `work` are scratch.

    Row i of the factor is the subtree of the elimination tree that its entries span (Liu 1990).
    """
    d = indptr.size - 1
    for i in range(d):
        counts[i] = 0
        parent[i] = -1
        work[i] = -1
    for i in range(d):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            while j != -1 and j < i:
                following = work[j]
                work[j] = i
                if following == -1:
                    parent[j] = i
                j = following
    total = 0
    for i in range(d):
        work[i] = -1
    for i in range(d):
        work[i] = i
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            while j < i and work[j] != i:
                work[j] = i
                counts[j] += 1
                total += 1
                j = parent[j]
        if total > most:
            break
    return total
