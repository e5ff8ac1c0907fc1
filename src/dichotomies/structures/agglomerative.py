"""Trees grown upwards: the two nearest clusters of classes are joined until one is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist

from dichotomies.structures.balance import best_within_bounds, check_balance, highest_boundary, within_bounds
from dichotomies.structures.base import STRUCTURES, GrowingTask, Structure, split_downwards
from dichotomies.structures.class_points import class_points
from dichotomies.structures.two_means import halves, two_means

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.tree import ClassTree

Method = Literal["ward", "average", "single"]

#: Bytes of distances between classes held at a time, twice: 8 B for each of k (k - 1) / 2 pairs.
_DISTANCE_BYTES = 2**27


class Agglomerative(Structure):
    """Base class: joins the class centroids by the linkage `method` of scipy.

    The row of leaves of scipy's dendrogram, the larger cluster always to the right, is cut downwards again,
    each time between the neighbours that were joined last among those boundaries that leave enough classes
    on either side. Without that limit the tree would be the dendrogram; with it, single classes that are
    joined one after another, as average linkage is prone to, are cut off in groups rather than one by one.

    Where the distances between all classes would take more than 128 MB (beyond 5,792 classes), the classes
    are first divided by balanced 2-means into parts that are small enough.
    """

    _method: Method

    def __init__(self, balance: float = 0.0, metric: str = "auto") -> None:
        self.balance = balance
        self.metric = metric

    def _n_left(self, heights: FloatArray) -> int:
        """How many classes of a row go left, given the heights at which neighbours were joined."""
        return best_within_bounds(heights, check_balance(self.balance))

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:  # noqa: ARG002
        classes = class_points(task, self.metric)
        height_after = np.full(task.n_classes, np.nan)  # of the boundary on a class's right, by its code

        def split(codes: IntArray) -> tuple[IntArray, IntArray]:
            if 4 * len(codes) * (len(codes) - 1) > _DISTANCE_BYTES:
                preference = two_means(classes.points[codes])
                return halves(codes) if preference is None else within_bounds(codes, preference, 1.0)
            if np.isnan(height_after[codes[:-1]]).any():
                row, heights = dendrogram(classes.points[codes], self._method)
                codes = codes[row]
                height_after[codes[:-1]] = heights
            n_left = self._n_left(height_after[codes[:-1]])
            return codes[:n_left], codes[n_left:]

        return split_downwards(task, split, classes.order)


@STRUCTURES.register("ward")
class Ward(Agglomerative):
    """Ward's clustering of the class centroids: joins what adds least to the sum of squares.

    The tree does not depend on the seed nor on the classes' names.

    Parameters
    ----------
    balance : float, default=0.0
        The least share of a node's classes on either side is half of it, but never less than a twentieth;
        1 halves every node. No leaf is deeper than ``log(k) / -log(1 - s) + 1``, s the least share.
    metric : "auto", "raw", "within" or "cosine", default="auto"
        How far centroids are apart; see "2-means".

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
    """Average linkage of the class centroids: joins the clusters whose members are nearest on average.

    Its trees are deep, which costs time and, with few rows per class, often pays: unlike classes are split
    off early and like ones are told apart last. The tree does not depend on the seed nor on the names.

    Parameters
    ----------
    balance : float, default=0.0
        The least share of a node's classes on either side is half of it, but never less than a twentieth;
        1 halves every node. No leaf is deeper than ``log(k) / -log(1 - s) + 1``, s the least share.
    metric : "auto", "raw", "within" or "cosine", default="auto"
        How far centroids are apart; see "2-means".

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
    """Single linkage of the class centroids: the classes that stand apart are split off first, one by one.

    A node that tells one class from all others is easy for a linear classifier where one that tells many
    from many is not, so with hundreds of classes these trees can have by far the lowest NLL of all; and they
    are by far the dearest to train, because the rows of a class that is left over to the end are at nearly
    every node: a leaf may be as deep as there are classes, and often lies a quarter of that deep. Predicting
    costs what it costs with any tree. Naive Bayes does not gain from them. Neighbours that were joined at
    the same height are parted in the middle. The tree does not depend on the seed nor on the names.

    Parameters
    ----------
    metric : "auto", "raw", "within" or "cosine", default="auto"
        How far centroids are apart; see "2-means".

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

    def __init__(self, metric: str = "auto") -> None:
        self.metric = metric

    def _n_left(self, heights: FloatArray) -> int:
        return highest_boundary(heights, 1)


def dendrogram(points: FloatArray, method: Method) -> tuple[IntArray, FloatArray]:
    """The row of leaves, larger clusters to the right, and the height at which neighbours were joined."""
    merges = linkage(pdist(points), method)  # points that are all zeros could look like distances to it
    m = len(points)
    size = np.concatenate([np.ones(m), merges[:, 3]])
    row: list[int] = []
    heights: list[float] = []
    pending: list[tuple[int, float]] = [(2 * m - 2, np.nan)]  # a cluster, and the height on its right
    while pending:
        cluster, after = pending.pop()
        if cluster < m:
            row.append(cluster)
            heights.append(after)
            continue
        one, other = (int(child) for child in merges[cluster - m, :2])
        small, large = (one, other) if size[one] <= size[other] else (other, one)
        pending += [(large, after), (small, float(merges[cluster - m, 2]))]
    return np.array(row, dtype=np.intp), np.array(heights[:-1])
