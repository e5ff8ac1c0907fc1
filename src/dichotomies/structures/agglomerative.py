"""Agglomerative clustering of the class centroids, cut into a binary tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies.structures.base import (
    STRUCTURES,
    GrowingTask,
    Structure,
    balanced_boundary,
    check_balance,
    highest_boundary,
    split_downwards,
)
from dichotomies.structures.class_points import class_points
from dichotomies.structures.two_means import split_by_two_means
from dichotomies.tree import ClassTree
from dichotomies.tree.dendrogram import Method, dendrogram

#: Upper limit for the pairwise distances, 8 bytes for each of k (k - 1) / 2 pairs; scipy holds two copies.
_DISTANCE_BYTES = 2**27


class Agglomerative(Structure):
    """Base class: agglomerative clustering of the class centroids by scipy's linkage `_method`.

    The leaves of the dendrogram are ordered with the larger cluster always on the right. This row is then
    split top-down at the highest merge among the boundaries that leave enough classes on either side.
    Without that limit the tree would be the dendrogram; with it, classes that were merged one at a time, as
    average linkage tends to, are split off in groups.

    If the pairwise distances would take more than 128 MB (beyond 5,792 classes), balanced 2-means first
    divides the classes into smaller subsets.
    """

    _method: Method

    def __init__(self, balance: float = 0.0, metric: str = "auto") -> None:
        self.balance = balance
        self.metric = metric

    def _n_left(self, heights: FloatArray) -> int:
        """Return the number of classes that go left, given the merge heights between neighbouring leaves."""
        return balanced_boundary(heights, check_balance(self.balance))

    def _first_by_two_means(self, n_classes: int) -> float | None:
        """Balance of the 2-means split of a set too large to be clustered; None for others."""
        return 1.0 if 4 * n_classes * (n_classes - 1) > _DISTANCE_BYTES else None

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:  # noqa: ARG002
        from scipy.spatial.distance import pdist  # takes long to import

        classes = class_points(task, self.metric)
        height_after = np.full(task.rows.n_classes, np.nan)  # merge height to the right of each class

        def split(codes: IntArray) -> tuple[IntArray, IntArray]:
            balance = self._first_by_two_means(len(codes))
            if balance is not None:
                return split_by_two_means(codes, classes.points[codes], balance)
            if np.isnan(height_after[codes[:-1]]).any():
                row, heights = dendrogram(pdist(classes.points[codes]), self._method)
                codes = codes[row]
                height_after[codes[:-1]] = heights
            n_left = self._n_left(height_after[codes[:-1]])
            return codes[:n_left], codes[n_left:]

        return split_downwards(task, split, classes.order)


@STRUCTURES.register("ward")
class Ward(Agglomerative):
    """Ward's clustering of the class centroids: each merge adds least to the within-cluster sum of squares.

    The tree depends neither on the seed nor on the label names.

    Parameters
    ----------
    balance, metric
        See "2-means".

    References
    ----------
    Ward, *Hierarchical grouping to optimize an objective function*, JASA 1963.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dichotomies.structures import STRUCTURES
    >>> X, y = load_iris(return_X_y=True)
    >>> STRUCTURES.create("ward").grow(X, load_iris().target_names[y])
    ClassTree.from_nested(['setosa', ['versicolor', 'virginica']])
    """

    _method = "ward"


@STRUCTURES.register("average")
class Average(Agglomerative):
    """Average linkage of the class centroids: merges the clusters with the smallest mean pairwise distance.

    The trees are deep. They take longer to train and are often more accurate with few rows per class:
    dissimilar classes are split off near the root, similar ones near the leaves. The tree depends neither on
    the seed nor on the label names.

    Parameters
    ----------
    balance, metric
        See "2-means".

    References
    ----------
    Sokal & Michener, *A statistical method for evaluating systematic relationships*, 1958.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.structures import STRUCTURES
    >>> X = np.array([[0.0], [1.0], [2.1], [9.0]])
    >>> STRUCTURES.create("average", metric="raw").grow(X, list("abcd"))
    ClassTree.from_nested(['d', ['c', ['a', 'b']]])
    """

    _method = "average"


@STRUCTURES.register("single")
class Single(Agglomerative):
    """Single linkage of the class centroids: splits off outlying classes first, one at a time.

    Separating one class from the rest is easy for a linear classifier where separating many from many is
    not, so with hundreds of classes these trees can have a much lower NLL than those of all other structures.
    They are also the most expensive to train, because the rows of the last classes are at nearly every node:
    a leaf may be as deep as there are classes, and a quarter of that is common. Prediction costs the same as
    with any other tree. Naive Bayes does not benefit. Ties in merge height are split in the middle. The tree
    depends neither on the seed nor on the label names.

    Parameters
    ----------
    metric : "auto", "raw", "within" or "cosine", default="auto"
        Distance between centroids; see "2-means".
    max_classes : int, default=None
        Divide the classes by 2-means into sets of at most so many first, and these by single linkage: a part
        of the gain at a small part of the cost, since only the lower part of the tree is deep. None for
        single linkage of all classes.

    References
    ----------
    Sibson, *SLINK: an optimally efficient algorithm for the single-link cluster method*, Computer Journal
    1973.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.structures import STRUCTURES
    >>> X = np.array([[0.0], [1.0], [2.1], [3.5], [9.0]])
    >>> STRUCTURES.create("single", metric="raw").grow(X, list("abcde"))
    ClassTree.from_nested(['e', ['d', ['c', ['a', 'b']]]])
    """

    _method = "single"

    def __init__(self, metric: str = "auto", max_classes: int | None = None) -> None:
        self.metric = metric
        self.max_classes = max_classes

    def _first_by_two_means(self, n_classes: int) -> float | None:
        if self.max_classes is not None and n_classes > max(self.max_classes, 1):
            return 0.0
        return super()._first_by_two_means(n_classes)

    def _n_left(self, heights: FloatArray) -> int:
        return highest_boundary(heights, 1)
