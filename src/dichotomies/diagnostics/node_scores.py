"""The scores of every node for its own rows: those whose class lies below it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dichotomies._common.chunks import for_each_chunk
from dichotomies._common.typing import FloatArray, IntArray, Matrix
from dichotomies._kernels.composition import class_log_proba
from dichotomies.diagnostics.evaluated_model import EvaluatedModel
from dichotomies.inference.scorers import AveragedScorer, CalibratedScorer, GivenScores, averaged
from dichotomies.learners import Scorer
from dichotomies.rows import NodeTask, Segments
from dichotomies.tree import ClassTree


@dataclass(frozen=True)
class NodeScores:
    """Log-odds of the nodes for their own rows, node after node.

    Attributes
    ----------
    log_odds : Segments
        Log-odds after internal calibration, if any.
    raw : Segments or None
        Log-odds before internal calibration; None without it.
    final_nll : ndarray of shape (n_rows,) or None
        Each row's NLL after external calibration; None without it.
    """

    log_odds: Segments
    raw: Segments | None
    final_nll: FloatArray | None


def node_scores(evaluated: EvaluatedModel) -> NodeScores:
    """Score every node's own rows; memory is proportional to rows times their depth."""
    tree, external = evaluated.tree, evaluated.external
    own = _OwnScores(evaluated)
    scores = np.empty((2 if is_calibrated(evaluated.scorer) else 1, own.offsets[-1]))
    final_nll = None if external is None else np.empty(len(evaluated.rows))

    def keep(rows: slice, stacked: FloatArray) -> None:
        for stage, log_odds in enumerate(stacked):
            own.collect(rows, log_odds, scores[stage])
        if external is not None and final_nll is not None:
            final_nll[rows] = _final_nll(tree, external, stacked[0], evaluated.rows.codes[rows])

    for_each_chunk(tree.n_nodes, _StackedScorer(evaluated.scorer), evaluated.rows.X, keep, evaluated.n_jobs)
    segments = [own.task.segments(stage) for stage in scores]
    return NodeScores(segments[0], segments[1] if len(segments) > 1 else None, final_nll)


def _final_nll(tree: ClassTree, external: Any, log_odds: FloatArray, codes: IntArray) -> FloatArray:
    log_proba = class_log_proba(tree, log_odds)
    external.predict_log_proba(log_proba, out=log_proba)
    result: FloatArray = -log_proba[np.arange(len(codes)), codes]
    return result


class _OwnScores:
    """Positions of each row's scores at its ancestors in a flat array, node after node."""

    def __init__(self, evaluated: EvaluatedModel) -> None:
        self._tree = evaluated.tree
        self.task = NodeTask(evaluated.rows, evaluated.tree)
        self.offsets = np.concatenate([[0], np.cumsum(self.task.node_size)])
        # a row's position at a node is its position among all rows sorted by leaf, plus the node's shift
        self._shift = self.offsets[:-1] - self.task.leaf_offset[self._tree.start]
        self._place = np.empty(len(evaluated.rows), dtype=np.intp)
        self._place[self.task.row_order] = np.arange(len(self._place))
        self._node_above_leaf = _node_above_leaf(self._tree)

    def collect(self, rows: slice, log_odds: FloatArray, out: FloatArray) -> None:
        """Write the scores of a chunk of rows to their positions, from the leaves to the root."""
        node, place = self._node_above_leaf[self.task.leaf_of_row[rows]], self._place[rows]
        row = np.arange(len(node))
        while len(row):
            out[self._shift[node] + place] = log_odds[row, node]
            node = self._tree.parent[node]
            below_root = node >= 0
            node, place, row = node[below_root], place[below_root], row[below_root]


def _node_above_leaf(tree: ClassTree) -> IntArray:
    """Return the parent of each leaf."""
    above = np.empty(tree.n_classes, dtype=np.intp)
    nodes = np.arange(tree.n_nodes)
    for child in (tree.left, tree.right):
        is_leaf = child < 0
        above[~child[is_leaf]] = nodes[is_leaf]
    return above


@dataclass(frozen=True)
class _StackedScorer:
    """Scorer that stacks the final log-odds and, with internal calibration, the raw ones."""

    scorer: Scorer
    pair_log_odds: Any = None  # not asked for

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of shape (1 or 2, n_rows, n_nodes)."""
        if is_calibrated(self.scorer):
            return np.stack(_final_and_raw(self.scorer, X))
        return self.scorer.log_odds(X)[np.newaxis]


def is_calibrated(scorer: Any) -> bool:
    """Return True if the nodes have internal calibration."""
    if isinstance(scorer, AveragedScorer):
        return all(map(is_calibrated, scorer.members))
    return isinstance(scorer, CalibratedScorer)


def _final_and_raw(scorer: Any, X: Matrix) -> tuple[FloatArray, FloatArray]:
    """Log-odds after and before internal calibration; no node scores a row twice."""
    if isinstance(scorer, CalibratedScorer):
        raw = scorer.scorer.log_odds(X)
        return replace(scorer, scorer=GivenScores()).log_odds(raw), raw
    finals, raws = zip(*(_final_and_raw(member, X) for member in scorer.members), strict=True)
    return averaged(iter(finals)), averaged(iter(raws))
