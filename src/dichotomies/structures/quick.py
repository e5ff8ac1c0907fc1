"""Fast scores of splits and trees, from the class centroids alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_ndtr

from dichotomies._common.typing import BoolArray, FloatArray
from dichotomies.structures.base import GrowingTask
from dichotomies.structures.class_points import class_points
from dichotomies.tree import ClassTree
from dichotomies.tree.forest import node_keys


def split_losses(points: FloatArray, weight: FloatArray, is_left: BoolArray) -> FloatArray:
    """Return the summed log-loss of a linear discriminant for several ways to split the classes in two.

    The discriminant is the projection onto the difference of the two sides' means, with the threshold
    midway, in units of the standard deviation of the rows on either side; rows have variance 1 about their
    class's point (metric "within"). A class of weight w at signed distance z adds ``-w log Φ(z)``.

    Parameters
    ----------
    points : (m, r)
        Class centroids.
    weight : (m,)
        Weights of the classes.
    is_left : (n_ways, m)
        True for classes that go left.

    Returns
    -------
    (n_ways,)
    """
    share = np.maximum(weight, 1e-12 * max(float(weight.max()), 1e-300))
    left, right = np.where(is_left, share, 0.0), np.where(is_left, 0.0, share)
    total_left, total_right = left.sum(axis=1, keepdims=True), right.sum(axis=1, keepdims=True)
    mean_left, mean_right = left @ points / total_left, right @ points / total_right
    direction = mean_left - mean_right
    length = np.sqrt((direction**2).sum(axis=1, keepdims=True))
    along = direction / np.maximum(length, 1e-300) @ points.T
    at_left = (left * along).sum(axis=1, keepdims=True) / total_left
    at_right = (right * along).sum(axis=1, keepdims=True) / total_right
    side_mean = np.where(is_left, at_left, at_right)
    variance = 1 + (share * (along - side_mean) ** 2).sum(axis=1, keepdims=True) / share.sum()
    distance = (along - (at_left + at_right) / 2) / np.sqrt(variance)
    return np.asarray(-(share * log_ndtr(np.where(is_left, distance, -distance))).sum(axis=1))


class QuickJudge:
    """Score of a tree without a base learner: the sum of the discriminants' losses over its nodes.

    A node's loss depends only on the classes on its two sides and is cached, so for a tree similar to
    earlier ones only the new nodes are computed.
    """

    is_quick = True

    def __init__(self, task: GrowingTask) -> None:
        self._classes = class_points(task, "within")
        self._total = max(float(self._classes.weight.sum()), np.finfo(float).tiny)
        self._known: dict[tuple[int, int], float] = {}

    def __call__(self, tree: ClassTree, **sample: Any) -> float:  # noqa: ARG002
        """Return the mean loss per row; `sample` is ignored, because no rows are drawn."""
        points = self._classes.points[tree.leaf_order]
        weight = self._classes.weight[tree.leaf_order]
        loss = 0.0
        for node, key in enumerate(node_keys(tree).sides):
            if key not in self._known:
                start, split, stop = tree.start[node], tree.split[node], tree.stop[node]
                is_left = np.arange(start, stop)[None, :] < split
                losses = split_losses(points[start:stop], weight[start:stop], is_left)
                self._known[key] = float(losses[0])
            loss += self._known[key]
        return loss / self._total
