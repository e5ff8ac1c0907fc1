"""`TreeSearch`: the most probable classes of each row, evaluating only the nodes that matter.

No class below a node is more probable than the node itself, so nodes less probable than the classes found
need not be looked into. External calibration that orders classes by ``w log p + b`` with w >= 0 keeps such a
bound, see `Ranking`, so that the most probable class can be searched for; its probabilities need a sum over
all classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_expit

from dichotomies._common.typing import FloatArray, IntArray, Matrix
from dichotomies._kernels.best_first import Paths, Ranking
from dichotomies.calibrators.multiclass import LOWEST, MulticlassCalibrator
from dichotomies.inference.compiled_search import CompiledSearch, compiled_way, is_compiled
from dichotomies.inference.frontier import Frontier
from dichotomies.learners import Scorer
from dichotomies.tree import ClassTree

#: Time of a visit in units of a node's part in evaluating all of them, see benchmarks/search.py: of a row in
#: compiled code, with sparse and with dense weights, and of a wave. Dense nodes are mostly naive Bayes, whose
#: confidence makes searches shorter than expected; that is why the number is half of what is measured.
_COST_OF_VISIT = {"sparse": 15.0, "dense": 5.0, "wave": 50.0}

#: A search is tried on so many rows first, if there are this many times more; it is given up for all of them
#: where it is given up for this share of the few.
_TRIED, _MANY_TIMES, _MOST_LOST = 32, 16, 0.25

#: Visits that take no time worth saving.
FEW_VISITS = 64


class Found(NamedTuple):
    """Classes found by a search, the first ranked first.

    Attributes
    ----------
    codes : (n_rows, k)
        -1 where there are fewer.
    log_proba : (n_rows, k)
        By the tree alone, before external calibration; minus infinity where there are fewer.
    n_visits : (n_rows,)
        Nodes evaluated.
    """

    codes: IntArray
    log_proba: FloatArray
    n_visits: IntArray


class Search(ABC):
    """Search of one tree or several."""

    @abstractmethod
    def pays(self, k: int, X: Matrix) -> bool:
        """Decide by sizes whether searching for `k` classes takes less time than evaluating every node."""

    @abstractmethod
    def most_visits(self, X: Matrix) -> int | None:
        """Visits of a row after which its search is given up; None if it never is."""

    @abstractmethod
    def best(self, X: Matrix, k: int, least: float = -np.inf, most: int | None = None) -> Found:
        """Find the `k` highest ranking classes, or those of rank `least` and above if they are fewer."""

    @abstractmethod
    def limit(self, X: Matrix, k: int) -> int | None:
        """Visits of a row that take as long as evaluating every node; None if a search has no limit.

        Zero if it cannot be limited and may take longer.
        """

    def is_worthwhile(self, X: Matrix, k: int) -> bool:
        """Decide whether to search for `k` classes: by sizes and, of many rows, by the visits of a few.

        Sizes do not say how flat the distributions of the rows are.
        """
        most = self.most_visits(X)
        if not self.pays(k, X) or most is None or X.shape[0] < _MANY_TIMES * _TRIED:
            return self.pays(k, X)
        lost = self.best(X[:_TRIED], k, most=most).codes[:, -1] < 0
        return bool(lost.mean() <= _MOST_LOST)


@dataclass(frozen=True, eq=False)
class TreeSearch(Search):
    """Search of one tree.

    Attributes
    ----------
    ranking : Ranking
        Order of the classes: that of their probabilities after external calibration.
    """

    tree: ClassTree
    scorer: Scorer
    ranking: Ranking

    @classmethod
    def of(cls, tree: ClassTree, scorer: Any, external: MulticlassCalibrator | None) -> TreeSearch | None:
        """Make a search; None if the calibrator does not rank classes by ``w log p + b`` with w >= 0."""
        n = tree.n_classes
        if external is None:
            return cls(tree, scorer, Ranking(np.ones(2 * n - 1), np.zeros(2 * n - 1), -np.inf))
        model = external.slope_and_bias()
        if model is None or not (model[0] >= 0).all():
            return None
        slope, bias = (each[tree.leaf_order] for each in model)
        ranges = np.stack([tree.start, tree.stop], axis=1).ravel()
        least = np.minimum.reduceat(np.append(slope, np.inf), ranges)[::2]
        most = np.maximum.reduceat(np.append(bias, -np.inf), ranges)[::2]
        slopes, biases = np.append(least, model[0][::-1]), np.append(most, model[1][::-1])
        return cls(tree, scorer, Ranking(slopes, biases, LOWEST))

    @cached_property
    def _children(self) -> tuple[IntArray, IntArray]:
        """Left and right child of each node: a node, or ``~code`` of a class."""
        return tuple(  # type: ignore[return-value]
            np.where(side < 0, ~self.tree.leaf_order[~np.minimum(side, -1)], side)
            for side in (self.tree.left, self.tree.right)
        )

    @cached_property
    def _compiled(self) -> CompiledSearch | None:
        """The search in one compiled loop; None if it cannot score such nodes."""
        if not is_compiled(self.scorer):
            return None
        return CompiledSearch.of(self.tree, self.scorer, self._children, self.ranking, self._paths)

    @property
    def needs_sum(self) -> bool:
        """True if probabilities need a sum over all classes."""
        return self.ranking.floor > -np.inf

    def pays(self, k: int, X: Matrix) -> bool:
        """Decide by sizes whether searching for `k` classes takes less time than evaluating every node."""
        return self._cost_of_visit(X) * (k + 1) * self.tree.mean_depth < self.tree.n_nodes

    def most_visits(self, X: Matrix) -> int:
        """Visits of a row after which its search is given up."""
        return int(2 * self.tree.n_nodes / max(self._cost_of_visit(X), 1.0))

    def limit(self, X: Matrix, k: int) -> int | None:
        """Visits of a row that take as long as evaluating every node; see `Search.limit`."""
        if compiled_way(self.scorer, X) is not None:
            return max(self.most_visits(X) // 2, FEW_VISITS)
        return None if self.tree.n_nodes <= FEW_VISITS or self.pays(k, X) else 0

    def _cost_of_visit(self, X: Matrix) -> float:
        way = compiled_way(self.scorer, X)
        return _COST_OF_VISIT["wave"] * X.shape[0] if way is None else _COST_OF_VISIT[way]

    def log_proba_of(self, X: Matrix, codes: IntArray) -> tuple[FloatArray, IntArray]:
        """Log-probabilities of given classes (n_rows, m) by the nodes on their paths, and visits of each row.

        Minus infinity for codes of -1.
        """
        rows = None if self._compiled is None else self._compiled.rows(X)
        if self._compiled is not None and rows is not None:
            return self._compiled.log_proba_of(rows, codes)
        out, (row, column) = np.full(codes.shape, -np.inf), np.nonzero(codes >= 0)
        wanted = codes[row, column]
        nodes, goes_left, offsets = self._paths
        size = (offsets[1:] - offsets[:-1])[wanted]
        ends = np.cumsum(size)
        place = np.repeat(offsets[wanted] - (ends - size), size) + np.arange(size.sum())
        different, which = np.unique(
            np.repeat(row, size) * self.tree.n_nodes + nodes[place], return_inverse=True
        )
        row_of, node_of = np.divmod(different, self.tree.n_nodes)
        s = self.scorer.pair_log_odds(X, row_of, node_of)[which]
        steps = log_expit(np.where(goes_left[place], s, -s))
        out[row, column] = np.bincount(np.repeat(np.arange(len(row)), size), steps, len(row))
        return out, np.bincount(row_of, minlength=len(codes))

    @cached_property
    def _paths(self) -> Paths:
        """Way from the root to each class."""
        nodes, leaves, goes_left = [], [], []
        leaf = np.arange(self.tree.n_classes)
        at = np.zeros(len(leaf), dtype=np.intp)  # ancestor of each leaf, a level at a time
        while len(leaf):
            is_left = leaf < self.tree.split[at]
            nodes.append(at)
            leaves.append(leaf)
            goes_left.append(is_left)
            at = np.where(is_left, self.tree.left[at], self.tree.right[at])
            leaf, at = leaf[at >= 0], at[at >= 0]
        codes = self.tree.leaf_order[np.concatenate(leaves)]
        order = np.argsort(codes, kind="stable")
        offsets = np.searchsorted(codes[order], np.arange(self.tree.n_classes + 1))
        return Paths(np.concatenate(nodes)[order], np.concatenate(goes_left)[order], offsets)

    def best(self, X: Matrix, k: int, least: float = -np.inf, most: int | None = None) -> Found:
        """Find the `k` highest ranking classes, or those of rank `least` and above if they are fewer.

        Classes of equal rank are in the order of their codes. The compiled search of a row is given up after
        `most` visits.
        """
        rows = None if self._compiled is None else self._compiled.rows(X)
        if self._compiled is None or rows is None:
            frontier = self._frontier(X)
            frontier.best(k, least)
            return Found(*frontier.classes(k, least), frontier.n_visits)
        codes, n_visits = np.empty((X.shape[0], k), dtype=np.intp), np.empty(X.shape[0], dtype=np.intp)
        found = Found(codes, np.empty((X.shape[0], k)), n_visits)
        self._compiled.best(rows, k, least, most, found)
        return found

    def beam(self, X: Matrix, k: int, width: int) -> Found:
        """Find `k` classes by keeping the `width` highest ranking nodes and classes at every step.

        It misses classes whose ancestors rank lower; with a width of all classes it misses none.
        """
        frontier = self._frontier(X)
        frontier.beam(max(k, width))
        return Found(*frontier.classes(k, -np.inf), frontier.n_visits)

    def _frontier(self, X: Matrix) -> Frontier:
        return Frontier(self.scorer, *self._children, self.ranking, X)
