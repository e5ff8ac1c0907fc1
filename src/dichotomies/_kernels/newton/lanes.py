"""Sparse rows and the weights of one or four members, which lie side by side.

A row is read once for all members. Their weights are an array (p + 1,), or (p + 1, 4), as many as a
vector register has doubles; the last ones are the intercepts.
"""

from typing import Any

from dichotomies._kernels.compile import vector_kernel

#: Members whose weights lie side by side.
LANES = 4


@vector_kernel
def score_row(X: Any, i: Any, w: Any, out: Any) -> None:
    """Write a row's score by each member: ``x' w + b``."""
    data, columns, indptr = X
    if w.ndim == 1:
        total = w[-1]
        for place in range(indptr[i], indptr[i + 1]):
            total += data[place] * w[columns[place]]
        out[0] = total
    else:
        a, b, c, d = w[-1, 0], w[-1, 1], w[-1, 2], w[-1, 3]
        for place in range(indptr[i], indptr[i + 1]):
            x, j = data[place], columns[place]
            a += x * w[j, 0]
            b += x * w[j, 1]
            c += x * w[j, 2]
            d += x * w[j, 3]
        out[0], out[1], out[2], out[3] = a, b, c, d


@vector_kernel
def add_row(X: Any, i: Any, pull: Any, w: Any) -> None:
    """Add a row times each member's pull to its weights, but not to the intercept."""
    data, columns, indptr = X
    if w.ndim == 1:
        a = pull[0]
        for place in range(indptr[i], indptr[i + 1]):
            w[columns[place]] += a * data[place]
    else:
        a, b, c, d = pull[0], pull[1], pull[2], pull[3]
        for place in range(indptr[i], indptr[i + 1]):
            x, j = data[place], columns[place]
            w[j, 0] += x * a
            w[j, 1] += x * b
            w[j, 2] += x * c
            w[j, 3] += x * d
