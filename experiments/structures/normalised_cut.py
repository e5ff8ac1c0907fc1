"""Normalised cut of a graph along its second eigenvector."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies.structures.base import least_side, split_in_half
from dichotomies.structures.class_points import is_sparse

#: Weight of an edge added between every two classes, as a share of the mean edge; it connects the graph.
_TELEPORT_SHARE = 0.01
#: Vectors and steps of subspace iteration; a rough direction is enough.
_N_VECTORS = 4
_N_ROUNDS = 15
_STEPS_PER_ROUND = 10


def cut_in_two(codes: IntArray, similar: Any, balance: float) -> tuple[IntArray, IntArray]:
    """Divide classes by the least normalised cut along the second eigenvector of their graph.

    Parameters
    ----------
    codes : (m,)
        The classes.
    similar : (m, m), dense or CSR
        Symmetric similarities with a diagonal of zeros.
    balance : float
        Limit on how unbalanced the sides may be; see `least_side`.

    Returns
    -------
    left, right
        Both in the order given.
    """
    m = len(codes)
    total = float(similar.sum())
    if total == 0.0:
        return split_in_half(codes)
    teleport = _TELEPORT_SHARE * total / m**2
    degree = np.asarray(similar.sum(axis=1)).ravel() + teleport * m
    position = _second_eigenvector(similar, degree, teleport) / np.sqrt(degree)
    along = np.argsort(np.round(position / np.abs(position).max(), 9), kind="stable")
    n_left = _best_cut(similar, degree, teleport, along, least_side(m, balance))
    is_left = np.zeros(m, dtype=bool)
    is_left[along[:n_left]] = True
    return codes[is_left], codes[~is_left]


def _second_eigenvector(similar: Any, degree: FloatArray, teleport: float) -> FloatArray:
    """Return the second eigenvector of the normalised similarity matrix, with weak edges between all pairs.

    The first eigenvector is known: the square roots of the degrees. The second is found by subspace
    iteration with the first projected out, or exactly if the matrix is dense.
    """
    root = np.sqrt(degree)
    first = root / np.sqrt(root @ root)
    if not is_sparse(similar):
        matrix = (similar + teleport) / (root[:, None] * root)
        matrix -= 2 * np.outer(first, first)  # moves the first eigenvalue from 1 to -1
        vector = np.linalg.eigh((matrix + matrix.T) / 2)[1][:, -1]
        return _signed(vector)

    def times(block: FloatArray) -> FloatArray:
        """Multiply with the mean of the matrix and the identity, which has no negative eigenvalues."""
        spread = block / root[:, None]
        mixed = (similar @ spread + teleport * spread.sum(axis=0)) / root[:, None]
        mixed = (mixed + block) / 2
        return np.asarray(mixed - np.outer(first, first @ mixed))

    block = np.random.RandomState(0).standard_normal((len(degree), _N_VECTORS))
    for _ in range(_N_ROUNDS):
        for _ in range(_STEPS_PER_ROUND):
            block = times(block)
        block = np.linalg.qr(block)[0]
    rotation = np.linalg.eigh(block.T @ times(block))[1]
    return _signed(block @ rotation[:, -1])


def _signed(vector: FloatArray) -> FloatArray:
    """Make the largest entry positive, since the sign of an eigenvector is arbitrary."""
    return np.asarray(vector * np.sign(vector[np.argmax(np.abs(vector))]))


def _best_cut(similar: Any, degree: FloatArray, teleport: float, along: IntArray, least: int) -> int:
    """Return the number of classes of the row `along` on the left of the least normalised cut.

    An edge between places i < j of the row crosses the cuts from i + 1 to j. Either side has at least
    `least` classes.
    """
    m = len(along)
    place = np.empty(m, dtype=np.intp)
    place[along] = np.arange(m)
    if is_sparse(similar):
        edges = similar.tocoo()
        (rows, columns), values = edges.coords, edges.data
    else:
        rows, columns = np.nonzero(similar)
        values = similar[rows, columns]
    low, high = np.minimum(place[rows], place[columns]), np.maximum(place[rows], place[columns])
    change = np.bincount(low + 1, values, m + 1) - np.bincount(high + 1, values, m + 2)[: m + 1]
    n_left = np.arange(m + 1)
    severed = np.cumsum(change) / 2 + teleport * n_left * (m - n_left)
    inside = np.cumsum(np.concatenate([[0.0], degree[along]]))
    allowed = slice(least, m - least + 1)
    part = inside[allowed]
    cost = severed[allowed] * (1 / part + 1 / (inside[-1] - part))
    best = np.flatnonzero(cost <= cost.min() * (1 + 1e-9)) + least
    return int(best[np.argmin(np.abs(2 * best - m))])
