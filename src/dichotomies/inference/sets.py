"""Prediction sets and tree answers of a fitted model, chunk by chunk."""

from __future__ import annotations

import numpy as np

from dichotomies._common.typing import FloatArray, IntArray, Matrix
from dichotomies.inference.answers import above
from dichotomies.inference.conformal import ConformalRows, Score, row_share
from dichotomies.inference.fitted import FittedForest
from dichotomies.inference.tree_answers import TreeAnswers, descend, first_without, node_masses
from dichotomies.inference.unions import wrong_unions
from dichotomies.tree import ClassTree


def conformal_rows(
    model: FittedForest, X: Matrix, codes: IntArray, groups: int | None = None, n_jobs: int | None = None
) -> ConformalRows:
    """Evaluate a model on rows that it has not seen; with unions of up to `groups` groups of the tree."""
    parts: dict[int, ConformalRows] = {}

    def evaluate(rows: slice) -> None:
        parts[rows.start] = evaluated(model.tree, model.log_proba(X[rows]), codes[rows], groups)

    model.in_chunks(X, evaluate, n_jobs)
    return ConformalRows.joined([parts[begin] for begin in sorted(parts)])


def evaluated(tree: ClassTree, whole: FloatArray, codes: IntArray, groups: int | None) -> ConformalRows:
    """Scores of the true classes `codes` (n_rows,), given all log-probabilities (n_rows, n_classes)."""
    own, leaf = whole[np.arange(len(whole)), codes], tree.leaf_position[codes]
    order = np.arange(whole.shape[1]) < codes[:, None]
    is_above = (whole > own[:, None]) | ((whole == own[:, None]) & order)
    proba = np.exp(whole)
    mass_above = np.where(is_above, proba, 0.0).sum(axis=1)
    wrong_node = first_without(tree, node_masses(tree, proba), leaf)
    wrong_union = None if groups is None else wrong_unions(tree, proba, leaf, groups)
    rank = is_above.sum(axis=1)
    return ConformalRows(codes, own, mass_above, rank, row_share(whole), wrong_node, wrong_union)


def sets(
    model: FittedForest,
    X: Matrix,
    score: Score,
    thresholds: FloatArray,
    *,
    allow_empty: bool,
    n_jobs: int | None = None,
) -> list[IntArray]:
    """Codes of each row's classes whose score is within their thresholds, the most probable first.

    The most probable class is always among them, unless empty sets are allowed.
    """
    least = np.exp(-thresholds.max(initial=-np.inf))
    if score.kind == "least-ambiguous" and least > 0:
        return _probable(model, X, thresholds, least, allow_empty, n_jobs)
    found: list[IntArray] = [np.empty(0, dtype=np.intp)] * X.shape[0]

    def predict(rows: slice) -> None:
        whole = model.log_proba(X[rows])
        order = np.argsort(-whole, axis=1, kind="stable")
        log_proba = np.take_along_axis(whole, order, axis=1)
        proba = np.exp(log_proba)
        rank = np.broadcast_to(np.arange(whole.shape[1]), whole.shape)
        share = row_share(whole)[:, None]
        inside = score(log_proba, np.cumsum(proba, axis=1) - proba, rank, share) <= thresholds[order]
        inside[:, 0] |= not allow_empty
        for i, (codes, mask) in enumerate(zip(order, inside, strict=True), rows.start):
            found[i] = codes[mask]

    model.in_chunks(X, predict, n_jobs)
    return found


def _probable(
    model: FittedForest,
    X: Matrix,
    thresholds: FloatArray,
    least: float,
    allow_empty: bool,
    n_jobs: int | None,
) -> list[IntArray]:
    """Sets of classes that are probable enough, which can be searched for."""
    found = above(model, X, min(1.0, float(least)), n_jobs)
    found.data[-np.log(found.data) > thresholds[found.indices] + 1e-12] = 0.0
    best = None if allow_empty else model.most_probable(X, n_jobs)
    result = []
    for i in range(X.shape[0]):
        part = slice(found.indptr[i], found.indptr[i + 1])
        codes, proba = found.indices[part].astype(np.intp), found.data[part]
        order = np.lexsort((codes, -proba))
        codes = codes[order][proba[order] > 0]
        result.append(codes if best is None or best[i] in codes else np.append(best[i], codes))
    return result


def confident_nodes(
    model: FittedForest, X: Matrix, confidence: float, n_jobs: int | None = None
) -> TreeAnswers:
    """The deepest group of classes with at least this probability, on the way down the likelier sides."""
    tree, n_rows = model.tree, X.shape[0]
    start, stop = np.empty((2, n_rows), dtype=np.intp)
    proba = np.empty(n_rows)

    def predict(rows: slice) -> None:
        sums = node_masses(tree, np.exp(model.log_proba(X[rows])))
        start[rows], stop[rows] = descend(tree, sums, confidence)
        within = np.arange(len(sums))
        proba[rows] = sums[within, stop[rows]] - sums[within, start[rows]]

    model.in_chunks(X, predict, n_jobs)
    return TreeAnswers(tree, start, stop, np.clip(proba, 0.0, 1.0))


def at_depth(model: FittedForest, X: Matrix, depth: int, n_jobs: int | None = None) -> TreeAnswers:
    """The most probable group of classes of the tree cut at a depth."""
    tree, cut, n_rows = model.tree, model.tree.cut(depth), X.shape[0]
    group, proba = np.empty(n_rows, dtype=np.intp), np.empty(n_rows)

    def predict(rows: slice) -> None:
        sums = node_masses(tree, np.exp(model.log_proba(X[rows])))
        masses = sums[:, cut.stop] - sums[:, cut.start]
        group[rows] = masses.argmax(axis=1)
        proba[rows] = masses.max(axis=1)

    model.in_chunks(X, predict, n_jobs)
    return TreeAnswers(tree, cut.start[group], cut.stop[group], np.clip(proba, 0.0, 1.0))
