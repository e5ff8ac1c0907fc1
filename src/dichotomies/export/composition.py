"""From the log-odds at the nodes of a tree to class log-probabilities and back, as ONNX operators."""

from __future__ import annotations

import numpy as np

from dichotomies._kernels.composition import levels
from dichotomies.export.graph import Graph
from dichotomies.tree import ClassTree


def composed(graph: Graph, tree: ClassTree, scores: str) -> str:
    """Sum of the log-probabilities of the turns on the path to each class, by pointer jumping.

    Turn k is to the left at node k, turn n + k to the right. In each round a turn adds the sum of the turn it
    points to, and points to where that one points: the number of rounds is the logarithm of the depth.
    """
    n = tree.n_nodes
    left, right = (graph.log_sigmoid(each) for each in (scores, graph.apply("Neg", scores)))
    nothing = graph.apply("Mul", graph.columns(scores, [0]), 0.0)  # what the turn 2 n, to the root, costs
    sums = graph.apply("Concat", left, right, nothing, axis=1)
    target = np.full(2 * n + 1, 2 * n)
    leaf_turn = np.empty(tree.n_classes, dtype=np.intp)
    for first, children in ((0, tree.left), (n, tree.right)):
        turn, is_node = first + np.arange(n), children >= 0
        for before in (0, n):
            target[before + children[is_node]] = turn[is_node]
        leaf_turn[tree.leaf_order[~children[~is_node]]] = turn[~is_node]
    while (target != 2 * n).any():
        sums = graph.apply("Add", sums, graph.columns(sums, target))
        target = target[target]
    return graph.columns(sums, leaf_turn)


def implied(graph: Graph, tree: ClassTree, log_proba: str) -> str:
    """Log-odds at every node that class log-probabilities imply, level by level from below."""
    parts, place, end = [log_proba], np.empty(tree.n_nodes, dtype=np.intp), tree.n_classes
    log_odds = []
    for level in reversed(levels(tree.left, tree.right)):
        below = parts[0] if len(parts) == 1 else graph.apply("Concat", *parts, axis=1)
        sides = [
            graph.columns(
                below,
                np.where(child < 0, tree.leaf_order[~np.minimum(child, -1)], place[np.maximum(child, 0)]),
            )
            for child in (tree.left[level], tree.right[level])
        ]
        log_odds.append(graph.apply("Sub", *sides))
        parts = [below, graph.log_sum_exp(sides)]
        place[level] = end + np.arange(level.stop - level.start)
        end += level.stop - level.start
    return graph.apply("Concat", *reversed(log_odds), axis=1)
