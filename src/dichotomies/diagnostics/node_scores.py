"""The scores of every node for its own rows: those whose class lies below it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies.inference.prediction import class_log_proba, for_each_chunk
from dichotomies.inference.scorers import AveragedScorer, CalibratedScorer
from dichotomies.rows import NodeTask

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray, Matrix
    from dichotomies.diagnostics.evaluated_model import EvaluatedModel
    from dichotomies.learners import Scorer
    from dichotomies.rows import Segments
    from dichotomies.tree import ClassTree


@dataclass(frozen=True)
class NodeScores:
    """Log-odds of the nodes for their own rows, node after node.

    Attributes
    ----------
    answers : Segments
        What the nodes answer, calibrated where they are.
    raw : Segments or None
        What they would answer without internal calibration; None where there is none.
    final_nll : ndarray of shape (n_rows,) or None
        Each row's NLL after external calibration; None without one.
    """

    answers: Segments
    raw: Segments | None
    final_nll: FloatArray | None


def node_scores(evaluated: EvaluatedModel) -> NodeScores:
    """Ask every node about its own rows; as many numbers as rows times their depth are kept."""
    tree, external = evaluated.tree, evaluated.external
    own = _OwnScores(evaluated)
    scores = np.empty((2 if is_calibrated(evaluated.scorer) else 1, own.offsets[-1]))
    final_nll = None if external is None else np.empty(len(evaluated.rows))

    def keep(rows: slice, answers: FloatArray) -> None:
        for layer, log_odds in enumerate(answers):
            own.collect(rows, log_odds, scores[layer])
        if external is not None and final_nll is not None:
            final_nll[rows] = _final_nll(tree, external, answers[0], evaluated.rows.codes[rows])

    for_each_chunk(tree, _Layers(evaluated.scorer), evaluated.rows.X, keep, evaluated.n_jobs)
    segments = [own.task.segments(layer) for layer in scores]
    return NodeScores(segments[0], segments[1] if len(segments) > 1 else None, final_nll)


def _final_nll(tree: ClassTree, external: Any, log_odds: FloatArray, codes: IntArray) -> FloatArray:
    log_proba = class_log_proba(tree, log_odds)
    external.predict_log_proba(log_proba, out=log_proba)
    result: FloatArray = -log_proba[np.arange(len(codes)), codes]
    return result


class _OwnScores:
    """Where each row's score at each node above it belongs, in an array of all nodes one after another."""

    def __init__(self, evaluated: EvaluatedModel) -> None:
        self._tree = evaluated.tree
        self.task = NodeTask(evaluated.rows, evaluated.tree)
        self.offsets = np.concatenate([[0], np.cumsum(self.task.node_size)])
        # A row's place at a node is its place among all rows sorted by leaf, moved by the node's shift.
        self._shift = self.offsets[:-1] - self.task.leaf_offset[self._tree.start]
        self._place = np.empty(len(evaluated.rows), dtype=np.intp)
        self._place[self.task.row_order] = np.arange(len(self._place))
        self._node_above_leaf = _node_above_leaf(self._tree)

    def collect(self, rows: slice, log_odds: FloatArray, out: FloatArray) -> None:
        """Write the scores of a chunk of rows where they belong, walking from the leaves to the root."""
        node, place = self._node_above_leaf[self.task.leaf_of_row[rows]], self._place[rows]
        row = np.arange(len(node))
        while len(row):
            out[self._shift[node] + place] = log_odds[row, node]
            node = self._tree.parent[node]
            below_root = node >= 0
            node, place, row = node[below_root], place[below_root], row[below_root]


def _node_above_leaf(tree: ClassTree) -> IntArray:
    """The node right above each leaf position."""
    above = np.empty(tree.n_classes, dtype=np.intp)
    nodes = np.arange(tree.n_nodes)
    for child in (tree.left, tree.right):
        is_leaf = child < 0
        above[~child[is_leaf]] = nodes[is_leaf]
    return above


@dataclass(frozen=True)
class _Layers:
    """What the nodes answer and, with internal calibration, what they would answer without, stacked."""

    scorer: Scorer

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of shape (1 or 2, n_rows, n_nodes)."""
        if is_calibrated(self.scorer):
            return np.stack(_answers_and_raw(self.scorer, X))
        return self.scorer.log_odds(X)[np.newaxis]


@dataclass(frozen=True)
class _Given:
    """Scores that are known already, so that no node is asked twice about a row."""

    scores: FloatArray

    def log_odds(self, X: Matrix) -> FloatArray:  # noqa: ARG002
        """The scores, as a fresh array."""
        return self.scores.copy()


def is_calibrated(scorer: Any) -> bool:
    """Whether the nodes have internal calibration."""
    if isinstance(scorer, AveragedScorer):
        return all(map(is_calibrated, scorer.members))
    return isinstance(scorer, CalibratedScorer)


def _answers_and_raw(scorer: Any, X: Matrix) -> tuple[FloatArray, FloatArray]:
    if isinstance(scorer, CalibratedScorer):
        raw = scorer.scorer.log_odds(X)
        return replace(scorer, scorer=_Given(raw)).log_odds(X), raw
    members = [_answers_and_raw(member, X) for member in scorer.members]
    answers, raws = ([_Given(scores) for scores in layer] for layer in zip(*members, strict=True))
    return AveragedScorer(answers).log_odds(X), AveragedScorer(raws).log_odds(X)
