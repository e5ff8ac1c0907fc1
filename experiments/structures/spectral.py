"""Spectral clustering: normalised cuts of a graph of class similarities."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies.structures.base import GrowingTask, Structure, check_balance, split_downwards
from dichotomies.structures.class_points import class_points, is_sparse
from dichotomies.tree import ClassTree
from experiments.structures.normalised_cut import cut_in_two

#: Maximum number of classes at a node for which all pairs are compared.
_FEW_CLASSES = 256
_N_NEIGHBORS = 15
#: The neighbour whose distance sets the scale of a class's similarities.
_SCALE_NEIGHBOR = 7


class Spectral(Structure):
    """Spectral clustering at every node: a normalised cut of the graph of class similarities.

    The second eigenvector of the node's graph orders the classes, and the least normalised cut along that
    order with enough classes on either side is chosen. The tree depends neither on the seed nor on the label
    names.

    Parameters
    ----------
    similarity : array or sparse matrix of shape (k, k), optional
        Non-negative similarities of the classes, in sorted order: a confusion matrix, for example. It is
        symmetrised, and its diagonal is ignored. By default similarities decrease with the distance of the
        class centroids, scaled by the distance to the seventh neighbour: between each class and its 15
        nearest at large nodes, and between all pairs at nodes of up to 256 classes.
    balance, metric
        See "2-means".

    References
    ----------
    Shi & Malik, *Normalized cuts and image segmentation*, PAMI 2000; Zelnik-Manor & Perona, *Self-tuning
    spectral clustering*, NeurIPS 2004. On a confusion matrix: Bengio, Weston & Grangier, *Label embedding
    trees for large multi-class tasks*, NeurIPS 2010.

    Examples
    --------
    >>> from experiments.structures import Spectral
    >>> confusion = [[9, 0, 3, 0], [0, 9, 1, 4], [2, 0, 9, 0], [0, 5, 0, 9]]
    >>> Spectral(similarity=confusion).grow(None, list("abcd"))
    ClassTree.from_nested([['b', 'd'], ['a', 'c']])
    """

    def __init__(self, similarity: Any = None, balance: float = 0.0, metric: str = "auto") -> None:
        self.similarity = similarity
        self.balance = balance
        self.metric = metric

    def grow_from(self, task: GrowingTask, rng: Any) -> ClassTree:  # noqa: ARG002
        """Cut the graph at every node."""
        balance = check_balance(self.balance)
        graph: _GivenGraph | _NeighborGraph
        if self.similarity is not None:
            graph = _GivenGraph(self.similarity, task.rows.class_order)
        else:
            classes = class_points(task, self.metric)
            graph = _NeighborGraph(classes.points, classes.order)

        def split(codes: IntArray) -> tuple[IntArray, IntArray]:
            if len(codes) == 2:
                return codes[:1], codes[1:]
            return cut_in_two(codes, graph.among(codes), balance)

        return split_downwards(task, split, graph.order)


class _GivenGraph:
    """The user's similarities, symmetrised and without the diagonal."""

    def __init__(self, similarity: Any, order: IntArray) -> None:
        n_classes = len(order)
        given: Any = (
            csr_array(similarity) if is_sparse(similarity) else np.asarray(similarity, dtype=np.float64)
        )
        if given.shape != (n_classes, n_classes):
            raise ValueError(
                f"similarity must have a row and a column for each of the {n_classes} classes, in sorted "
                f"order, but its shape is {given.shape}."
            )
        values = given.data if is_sparse(given) else given
        if not np.isfinite(values).all() or (values < 0).any():
            raise ValueError("similarity must hold finite numbers, none of them negative.")
        self.order = order
        self._edges = _without_diagonal(csr_array(given + given.T))

    def among(self, codes: IntArray) -> Any:
        """Return the similarities of some classes: dense for few classes, sparse otherwise."""
        part = _part(self._edges, codes)
        return part.toarray() if len(codes) <= _FEW_CLASSES else part


class _NeighborGraph:
    """Similarities from distances: of nearest neighbours or, for few points, of all pairs."""

    def __init__(self, points: FloatArray, order: IntArray) -> None:
        self.order = order
        self._points = points
        if len(points) > _FEW_CLASSES:
            self._edges = _neighbor_edges(points, order)

    def among(self, codes: IntArray) -> Any:
        """Return the similarities of some classes: dense for few classes, sparse otherwise."""
        if len(codes) > _FEW_CLASSES:
            return _part(self._edges, codes)
        points = self._points[codes]
        centred = points - points.mean(axis=0)
        length = np.einsum("ij,ij->i", centred, centred)
        squared = np.maximum(length[:, None] + length - 2 * (centred @ centred.T), 0.0)
        nearest = min(_SCALE_NEIGHBOR, len(codes) - 1)
        scale = np.sqrt(np.partition(squared, nearest, axis=1)[:, nearest])
        similar = _similarity(squared, scale[:, None] * scale)
        np.fill_diagonal(similar, 0.0)
        return similar


def _part(edges: Any, codes: IntArray) -> Any:
    """Return the edges among some classes, stored in the given order, which fixes the rounding of sums."""
    part = edges[codes][:, codes]
    part.sort_indices()
    return part


def _neighbor_edges(points: FloatArray, order: IntArray) -> Any:
    """Return the similarities of each class to its nearest neighbours, by class code."""
    from sklearn.neighbors import NearestNeighbors  # takes long to import

    k = len(points)
    found = NearestNeighbors(n_neighbors=_N_NEIGHBORS, algorithm="brute").fit(points[order])
    distance, neighbor = found.kneighbors()
    scale = distance[:, _SCALE_NEIGHBOR - 1]
    similar = _similarity(distance**2, scale[:, None] * scale[neighbor])
    rows = np.repeat(order, _N_NEIGHBORS)
    edges = csr_array((similar.ravel(), (rows, order[neighbor.ravel()])), shape=(k, k))
    return csr_array(edges + edges.T)


def _similarity(squared: FloatArray, scale: FloatArray) -> FloatArray:
    """Return ``exp(-squared / scale)``; 1 at distance 0 for any scale."""
    ratio = np.divide(squared, scale, out=np.where(squared > 0, np.inf, 0.0), where=scale > 0)
    return np.asarray(np.exp(-ratio))


def _without_diagonal(matrix: Any) -> Any:
    edges = matrix.tocoo()
    rows, columns = edges.coords
    off = rows != columns
    return csr_array((edges.data[off], (rows[off], columns[off])), shape=matrix.shape)
