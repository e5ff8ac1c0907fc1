"""A tree over the classes, grown from probabilities: classes that are probable together are neighbours."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from dichotomies._common.typing import FloatArray
from dichotomies.calibrators.multiclass._calibration_rows import CalibrationRows, normalise, row_blocks
from dichotomies.tree import ClassTree
from dichotomies.tree.dendrogram import cut_from, dendrogram

#: Levels that a tree may have beyond those of a balanced one.
_MORE_LEVELS = 10
#: Rows of a class from which on its labels outweigh the probabilities of the class.
_MANY_ROWS = 50
#: Lower probabilities of a class in a row say nothing about the class.
_LEAST_SHARE = 0.01
_BLOCK_BYTES = 2**25


def class_tree(rows: CalibrationRows, scale: float = 1.0) -> ClassTree:
    """Cluster the classes by average linkage of the fourth roots of their mean probabilities.

    A class's mean is over all rows, by the class's probability in the row, and over the rows with its label.
    The fewer rows a class has, the less its labels count: nodes are calibrated on the same rows, and would
    look better than they are in a tree that fits their noise.

    Parameters
    ----------
    scale : float
        Factor of the log-probabilities.

    Returns
    -------
    ClassTree
        Over the columns, 0 to n_classes - 1.
    """
    profiles = _mean_probabilities(rows, scale) ** 0.25
    products = profiles @ profiles.T
    squares = np.diag(products)
    first, second = np.triu_indices(len(squares), 1)
    distances = squares[first] + squares[second] - 2 * products[first, second]
    row, heights = dendrogram(np.sqrt(np.maximum(distances, 0.0)), "average")
    return cut_from(row, heights, int(np.ceil(np.log2(len(row)))) + _MORE_LEVELS)


def _mean_probabilities(rows: CalibrationRows, scale: float) -> FloatArray:
    """Return each class's mean distribution, (n_classes, n_classes)."""
    n_classes = rows.shape[1]
    sums, total = np.zeros((n_classes, n_classes)), np.zeros(n_classes)
    of_label = rows.weight * (rows.class_weight / (rows.class_weight + _MANY_ROWS))[rows.codes]
    for part in row_blocks(*rows.shape, n_bytes=_BLOCK_BYTES):
        p = np.exp(normalise(scale * rows.block(part)))
        share = np.where(p >= _LEAST_SHARE, rows.weight[part, None] * p, 0.0)
        share[np.arange(len(p)), rows.codes[part]] += of_label[part]
        sums += csr_array(share.T) @ p
        total += share.sum(axis=0)
    return np.asarray(sums / np.maximum(total, np.finfo(float).tiny)[:, None])
