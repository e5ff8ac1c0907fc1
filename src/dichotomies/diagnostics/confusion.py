"""Confused pairs of classes, and the node that separates them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
from dichotomies.diagnostics.evaluated_model import DiagnosticTable, EvaluatedModel
from dichotomies.metrics.binning import sums_by_index
from dichotomies.tree import ClassTree

#: Number of other classes, the most probable ones, whose probability is counted for a row.
_OTHERS = 16


@dataclass(frozen=True)
class ConfusedPairs:
    """Pairs of classes, most confused first; made by `confused_pairs`.

    Attributes
    ----------
    first, second : ndarray of shape (n_pairs,)
        The labels, the leaf further left in the tree first.
    mass : ndarray of shape (n_pairs,)
        The probability of the other class, summed over the rows of both: the expected number of confused
        rows if predictions were drawn from the probabilities.
    errors : ndarray of shape (n_pairs,)
        The number of rows of either class whose most probable class is the other.
    rows : ndarray of shape (n_pairs,)
        The number of rows of both classes.
    node, depth : ndarray of shape (n_pairs,)
        The node that separates the two, and its depth.
    """

    first: LabelArray
    second: LabelArray
    mass: FloatArray
    errors: FloatArray
    rows: FloatArray
    node: IntArray
    depth: IntArray

    def __len__(self) -> int:
        return len(self.first)

    def to_table(self) -> DiagnosticTable:
        """Return a table with one row per pair."""
        return DiagnosticTable(dict(vars(self)))


def confused_pairs(
    clf: Any,
    X: Matrix,
    y: npt.ArrayLike,
    top: int = 20,
    *,
    by: str = "mass",
    sample_weight: npt.ArrayLike | None = None,
) -> ConfusedPairs:
    """Find the pairs of classes that a nested dichotomy confuses most, after all calibration.

    Only the 16 most probable other classes of each row are counted, so that memory does not grow with the
    square of the number of classes.

    Parameters
    ----------
    clf : fitted NestedDichotomyClassifier, or a pipeline that ends in one
    X : array, CSR matrix or data frame of shape (n_rows, n_features)
    y : array of shape (n_rows,)
        Labels, all of them known to the classifier.
    top : int
        Maximum number of pairs.
    by : {"mass", "errors"}
        Ranking criterion; ties are broken by the other.
    sample_weight : array of shape (n_rows,), optional
        Weight of each row.

    Returns
    -------
    ConfusedPairs

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dichotomies import NestedDichotomyClassifier
    >>> from dichotomies.diagnostics import confused_pairs
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = NestedDichotomyClassifier(structure=[0, [1, 2]], random_state=0).fit(X, y)
    >>> pairs = confused_pairs(clf, X, y, top=1)
    >>> pairs.first, pairs.second, pairs.node
    (array([1]), array([2]), array([1]))
    """
    if by not in ("mass", "errors"):
        raise ValueError(f"Pairs are ordered by 'mass' or 'errors', not by {by!r}.")
    if top < 0:
        raise ValueError(f"top must not be negative, got {top}.")
    evaluated = EvaluatedModel.of(clf, X, y, sample_weight)
    mass, errors = evaluated.sum_chunks(_Confusion(evaluated).of_chunk)
    pairs = (mass + errors).tocoo()  # pairs with nonzero mass or errors
    # scipy answers empty indices with one zero
    mass, errors = (np.asarray(part[pairs.row, pairs.col]).ravel()[: pairs.nnz] for part in (mass, errors))
    order = np.lexsort((-errors, -mass) if by == "mass" else (-mass, -errors))[:top]
    left, right = pairs.row[order], pairs.col[order]
    tree = evaluated.tree
    node = separating_nodes(tree, left, right)
    rows = sums_by_index(evaluated.leaf_of_row, evaluated.weight, tree.n_classes)
    return ConfusedPairs(
        first=tree.leaf_labels[left],
        second=tree.leaf_labels[right],
        mass=mass[order],
        errors=errors[order],
        rows=rows[left] + rows[right],
        node=node,
        depth=tree.depth[node],
    )


class _Confusion:
    """Confusion of a chunk of rows, by pair of leaf positions."""

    def __init__(self, evaluated: EvaluatedModel) -> None:
        self._evaluated = evaluated
        self._position = evaluated.tree.leaf_position
        self._leaf_of_row = evaluated.leaf_of_row

    def of_chunk(self, rows: slice, log_odds: FloatArray) -> tuple[Any, Any]:
        """Return probability mass and number of errors, each a sparse upper triangular matrix."""
        before, after = self._evaluated.probabilities(log_odds)
        proba = before if after is None else after
        own, codes, weight = (
            self._leaf_of_row[rows],
            self._evaluated.rows.codes[rows],
            self._evaluated.weight[rows],
        )
        answer = proba.argmax(axis=1)
        is_error = answer != codes
        proba[np.arange(len(own)), codes] = -1.0
        n_others = min(_OTHERS, proba.shape[1] - 1)
        others = np.argpartition(-proba, n_others - 1, axis=1)[:, :n_others]
        mass = np.take_along_axis(proba, others, axis=1) * weight[:, None]
        return (
            self._matrix(np.repeat(own, n_others), self._position[others].ravel(), mass.ravel()),
            self._matrix(own[is_error], self._position[answer[is_error]], weight[is_error]),
        )

    def _matrix(self, one: IntArray, other: IntArray, amounts: FloatArray) -> Any:
        k = self._evaluated.tree.n_classes
        return csr_array((amounts, (np.minimum(one, other), np.maximum(one, other))), shape=(k, k))


def separating_nodes(tree: ClassTree, left: IntArray, right: IntArray) -> IntArray:
    """Return the node that separates two leaf positions, for each pair with left < right."""
    node_of_split = np.empty(tree.n_classes + 1, dtype=np.intp)
    node_of_split[tree.split] = np.arange(tree.n_nodes)
    rank = tree.split_depth  # two leaves are separated by the shallowest split between them
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    splits = [a + 1 + int(rank[a:b].argmin()) for a, b in pairs]
    return node_of_split[np.array(splits, dtype=np.intp)]
