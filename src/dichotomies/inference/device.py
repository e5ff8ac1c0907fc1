"""Class probabilities of rows on a GPU: linear nodes are evaluated and composed where the rows are."""

from __future__ import annotations

from typing import Any

import numpy as np

from dichotomies._common.chunks import row_slices, rows_within
from dichotomies._common.validation import like, log_softmax, to_host
from dichotomies.inference.fitted import FittedForest
from dichotomies.inference.scorers import CalibratedScorer, JoinedScorer
from dichotomies.learners import Scorer
from dichotomies.learners.weights import DenseWeights
from dichotomies.tree import ClassTree

#: Bytes of log-odds held at a time.
_CHUNK_BYTES = 2**30


def device_log_proba(model: FittedForest, X: Any, xp: Any) -> Any:
    """Class log-probabilities of rows on a device, shape (n_rows, n_classes), on the same device."""
    step = rows_within(_CHUNK_BYTES, model.forest.n_different + 2 * model.n_classes)
    chunks = [_of_chunk(model, X[rows, :], xp) for rows in row_slices(X.shape[0], step)]
    return chunks[0] if len(chunks) == 1 else xp.concat(chunks)


def _of_chunk(model: FittedForest, X: Any, xp: Any) -> Any:
    log_odds = _log_odds(model.scorer, X, xp)
    trees = [_of_tree(model, t, log_odds, xp) for t in range(len(model.forest.trees))]
    out = trees[0] if len(trees) == 1 else _pooled(trees, model.pooling, xp)
    return out if model.external is None else model.external.predict_log_proba(out)


def _of_tree(model: FittedForest, t: int, log_odds: Any, xp: Any) -> Any:
    forest = model.forest
    own = xp.take(log_odds, like(forest.place[t], log_odds, xp), axis=1)
    own = own * like(np.where(forest.is_exchanged[t], -1.0, 1.0), own, xp)
    out = composed(forest.trees[t], own, xp)
    calibrator = model.members[t] if model.members else None
    return out if calibrator is None else calibrator.predict_log_proba(out)


def _pooled(trees: list[Any], pooling: str, xp: Any) -> Any:
    """The normalised geometric, or the arithmetic, mean of distributions."""
    if pooling == "geometric":
        return log_softmax(sum(trees) / len(trees), xp)
    stack = xp.stack(trees)
    top = xp.max(stack, axis=0)
    return top + xp.log(xp.mean(xp.exp(stack - top), axis=0))


def _log_odds(scorer: Scorer, X: Any, xp: Any) -> Any:
    """Log-odds at all nodes; of nodes that are not linear they are computed on the host."""
    if isinstance(scorer, JoinedScorer):
        return xp.concat([_log_odds(part, X, xp) for part in scorer.parts], axis=1)
    if isinstance(scorer, CalibratedScorer):
        scores = xp.clip(_log_odds(scorer.scorer, X, xp), -scorer.bound, scorer.bound)
        if scorer.maps.is_affine:
            slope, shift, _ = scorer.maps.parameters.T
            return scores * like(slope, X, xp) + like(shift, X, xp)
        on_host = np.ascontiguousarray(to_host(scores), dtype=np.float64)
        scorer.maps.apply(on_host)
        return like(on_host, X, xp)
    if isinstance(scorer, DenseWeights):
        return X @ like(scorer.weights.T, X, xp) + like(scorer.intercept, X, xp)
    return like(scorer.log_odds(to_host(X)), X, xp)


def composed(tree: ClassTree, log_odds: Any, xp: Any) -> Any:
    """Log-probability of every class from the log-odds of going left at every node, level by level."""
    softplus = xp.log1p(xp.exp(-xp.abs(log_odds)))
    left, right = xp.clip(log_odds, None, 0.0) - softplus, xp.clip(-log_odds, None, 0.0) - softplus
    turns = xp.concat([left, right], axis=1)
    path = xp.zeros_like(log_odds[:, :1])  # of the nodes of the level, the root first
    leaves, codes = [], []
    level = np.flatnonzero(tree.parent < 0)
    while len(level):
        child = np.concatenate([tree.left[level], tree.right[level]])
        turn = np.concatenate([level, level + tree.n_nodes])
        nodes_first = like(np.argsort(child < 0, kind="stable"), path, xp)
        below = xp.concat([path, path], axis=1) + xp.take(turns, like(turn, path, xp), axis=1)
        below = xp.take(below, nodes_first, axis=1)
        n_inner = int((child >= 0).sum())
        leaves.append(below[:, n_inner:])
        codes.append(tree.leaf_order[~child[child < 0]])
        path, level = below[:, :n_inner], child[child >= 0]
    order = np.argsort(np.concatenate(codes))
    return xp.take(xp.concat(leaves, axis=1), like(order, path, xp), axis=1)
