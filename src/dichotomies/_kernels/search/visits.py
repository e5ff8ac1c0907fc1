"""A tree as searches take it, and what a row has reached in it."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dichotomies._common.typing import FloatArray, IntArray
from dichotomies._kernels.compile import kernel
from dichotomies._kernels.score_maps import apply_one


class Maps(NamedTuple):
    """Maps of the nodes as in `ScoreMaps`, or none; scores are first clipped to ``[-bound, bound]``."""

    kinds: npt.NDArray[np.int8]
    parameters: FloatArray
    knot_offsets: IntArray
    knots: FloatArray
    probabilities: FloatArray
    bound: float


class SearchedTree(NamedTuple):
    """Nodes of a tree as a search takes them.

    Attributes
    ----------
    nodes : SparseNodes, DenseNodes or QuadraticNodes
    maps : Maps
    left, right : (n_nodes,)
        Child node, or ``~code`` of a class.
    """

    nodes: Any
    maps: Maps
    left: IntArray
    right: IntArray


class Reached(NamedTuple):
    """Nodes and classes that a row has reached, numbered in the order of reaching; all (2 * n_nodes + 1,).

    The root is 0, the children of visit v are 2 v + 1 and 2 v + 2.

    Attributes
    ----------
    item
        A node, or ``~code`` of a class.
    log_proba
    """

    item: IntArray
    log_proba: FloatArray


def none_reached(n_nodes: int) -> Reached:
    """Allocate memory that can hold the whole tree."""
    return Reached(np.empty(2 * n_nodes + 1, np.int64), np.empty(2 * n_nodes + 1))


@kernel
def mapped(maps: Maps, k: int, score: float) -> float:
    """Apply the map of a node."""
    one = np.array([score])
    own = slice(maps.knot_offsets[k], maps.knot_offsets[k + 1])
    apply_one(maps.kinds[k], maps.parameters[k], maps.knots[own], maps.probabilities[own], one)
    return float(one[0])


@kernel
def log_likelier(s: float) -> float:
    """Log-probability of the likelier side, of log-odds."""
    return float(-np.log(1.0 + np.exp(-np.abs(s))))
