"""Candidates of a search of several trees: the classes that some tree found, and bounds on their pool."""

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel


@kernel
def pooled(log_proba: FloatArray, geometric: bool) -> float:
    """Mean of one class's log-probabilities by several trees, or the logarithm of the mean probability."""
    if geometric:
        return float(log_proba.sum() / len(log_proba))
    most = log_proba.max()
    if most == -np.inf:
        return -np.inf
    total = 0.0
    for t in range(len(log_proba)):
        total += np.exp(log_proba[t] - most)
    return float(most + np.log(total / len(log_proba)))


@kernel
def find_candidates(
    found: IntArray,
    log_proba: FloatArray,
    geometric: bool,
    slot_of: IntArray,
    known: FloatArray,
    codes: IntArray,
    upper: FloatArray,
    unseen: FloatArray,
) -> None:
    """Write the different classes that the trees found for each row, the highest bound on their pool first.

    Parameters
    ----------
    found, log_proba : (n_trees, n_rows, m)
        The most probable classes by each tree, in descending order.
    slot_of : (n_classes,)
        Memory, filled with -1 before and after.
    known : (n_trees * m, n_trees)
        Memory.
    codes, upper : (n_rows, n_trees * m)
        Written: classes, and the pool with the last log-probability of every tree that did not find them; -1
        and minus infinity where there are fewer.
    unseen : (n_rows,)
        Written: the pool of the last log-probabilities, which bounds that of all other classes.
    """
    n_trees, n_rows, m = found.shape
    last = np.empty(n_trees)
    for i in range(n_rows):
        last[:] = log_proba[:, i, m - 1]
        unseen[i] = pooled(last, geometric)
        codes[i], upper[i] = -1, -np.inf
        n = 0
        for t in range(n_trees):
            for j in range(m):
                c = found[t, i, j]
                if slot_of[c] < 0:
                    slot_of[c], codes[i, n], known[n] = n, c, last
                    n += 1
                known[slot_of[c], t] = log_proba[t, i, j]
        for j in range(n):
            slot_of[codes[i, j]] = -1
            upper[i, j] = pooled(known[j], geometric)
        order = np.argsort(-upper[i, :n], kind="mergesort")
        codes[i, :n], upper[i, :n] = codes[i, :n][order], upper[i, :n][order]
