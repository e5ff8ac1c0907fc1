"""`ForestSearch`: the most probable classes of an ensemble, without every class of every tree.

Every tree names its most probable classes. A class that no tree has named is at most as probable, by each, as
the last class that the tree has named, so the mean over the trees of those bounds all other classes (Fagin's
threshold algorithm). Named classes are evaluated in all trees, the most promising first, until neither the
others nor the unnamed can be among the best; otherwise every tree names more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from dichotomies._common.typing import FloatArray, IntArray, Matrix
from dichotomies.calibrators.multiclass import LOWEST, MulticlassCalibrator
from dichotomies.inference.scorers import some_nodes
from dichotomies.inference.search import FEW_VISITS, Found, Search, TreeSearch
from dichotomies.tree.forest import Forest

#: Classes that every tree names at first, beyond those asked for, and how many times more in each round.
_MORE, _GROWTH = 3, 4


#: Classes that are evaluated in all trees, as a multiple of those asked for; see benchmarks/search.py.
_EVALUATED = 2


class _Named(NamedTuple):
    """Classes that trees have named for some rows.

    Attributes
    ----------
    codes, upper : (n_rows, n)
        Classes, and the pool with the last log-probability of every tree that did not name them; -1 and minus
        infinity where there are fewer.
    unseen : (n_rows,)
        The pool of the last log-probabilities, which bounds that of all other classes.
    n_visits : (n_rows,)
    """

    codes: IntArray
    upper: FloatArray
    unseen: FloatArray
    n_visits: IntArray


@dataclass(frozen=True, eq=False)
class ForestSearch(Search):
    """Search of several trees.

    Attributes
    ----------
    forest, scorer
        Of all distinct nodes.
    is_geometric : bool
        The pool is the normalised geometric mean of the trees' probabilities, otherwise the arithmetic one.
    slope, bias : (n_classes,)
        Order of the classes: by ``slope * log p + bias``, that of their probabilities after external
        calibration.
    is_calibrated : bool
        True with external calibration.
    """

    forest: Forest
    scorer: Any
    is_geometric: bool
    slope: FloatArray
    bias: FloatArray
    is_calibrated: bool

    @classmethod
    def of(
        cls, forest: Forest, scorer: Any, pooling: str, external: MulticlassCalibrator | None
    ) -> ForestSearch | None:
        """Make a search; None if the order under the calibrator is not that of ``w log p + b`` with w >= 0.

        The geometric mean is known up to a factor, so that all w must be equal there.
        """
        n, is_geometric = forest.n_classes, pooling == "geometric"
        model = (np.ones(n), np.zeros(n)) if external is None else external.slope_and_bias()
        if model is None or not (model[0] >= 0).all() or (is_geometric and np.ptp(model[0]) > 0):
            return None
        return cls(forest, scorer, is_geometric, *model, external is not None)

    @cached_property
    def trees(self) -> list[TreeSearch]:
        """Searches of the trees, each with its own copy of the nodes."""
        found = []
        for t in range(len(self.forest.trees)):
            tree, nodes = self.forest.oriented(t)
            search = TreeSearch.of(tree, some_nodes(self.scorer, nodes), None)
            assert search is not None
            found.append(search)
        return found

    @property
    def needs_sum(self) -> bool:
        """True if probabilities need a sum over all classes."""
        return self.is_calibrated or self.is_geometric

    def pays(self, k: int, X: Matrix) -> bool:
        """Decide by sizes whether searching for `k` classes takes less time than evaluating every node."""
        return all(tree.pays((1 + _EVALUATED) * k + _MORE, X) for tree in self.trees)

    def limit(self, X: Matrix, k: int) -> int | None:
        """None, or zero if searching may take longer than evaluating every node."""
        return None if self.forest.n_different <= FEW_VISITS or self.pays(k, X) else 0

    def most_visits(self, X: Matrix) -> None:
        """No search is given up."""

    def best(self, X: Matrix, k: int, least: float = -np.inf, most: int | None = None) -> Found:  # noqa: ARG002
        """Find the `k` highest ranking classes, or those of rank `least` and above if they are fewer.

        Log-probabilities are those of the pool, of the geometric one before it is normalised.
        """
        n_rows, n_classes = X.shape[0], self.forest.n_classes
        codes, log_proba = np.full((n_rows, k), -1), np.full((n_rows, k), -np.inf)
        n_visits = np.zeros(n_rows, dtype=np.intp)
        left, m = np.arange(n_rows), min(k + _MORE, n_classes)
        while len(left):
            few = X[left] if len(left) < n_rows else X
            named = self._named(few, m)
            found, bar = self._evaluated(few, named, k, least)
            n_visits[left] += named.n_visits + found.n_visits
            codes[left], log_proba[left] = found.codes, found.log_proba
            unseen = self._bound(named.unseen) if m < n_classes else np.full(len(left), -np.inf)
            left, m = left[unseen >= bar] if m < n_classes else left[:0], min(m * _GROWTH, n_classes)
        return Found(codes, log_proba, n_visits)

    def log_proba_of(self, X: Matrix, codes: IntArray) -> tuple[FloatArray, IntArray]:
        """Pooled log-probabilities of given classes (n_rows, m), minus infinity for codes of -1."""
        by_tree, n_visits = self._by_tree(X, codes)
        return self._pooled(by_tree), n_visits

    # ------------------------------------------------------------------ steps

    def _named(self, X: Matrix, m: int) -> _Named:
        """The different classes among the `m` most probable by each tree, the highest bound first."""
        parts = [tree.best(X, m) for tree in self.trees]
        n_rows, n_trees, n_classes = X.shape[0], len(parts), self.forest.n_classes
        n_visits = np.sum([part.n_visits for part in parts], axis=0)
        found = np.hstack([part.codes for part in parts])  # (n_rows, n_trees * m)
        last = np.stack([part.log_proba[:, -1] for part in parts])  # bounds all classes not named
        key, first, which = np.unique(
            np.arange(n_rows)[:, None] * n_classes + found, return_index=True, return_inverse=True
        )
        row, code = np.divmod(key, n_classes)
        known = last[:, row]
        named_by = np.tile(np.repeat(np.arange(n_trees), m), n_rows)
        known[named_by, which.ravel()] = np.hstack([part.log_proba for part in parts]).ravel()
        pool = self._pooled(known)
        order = np.lexsort((first, -pool, row))  # rows stay together
        place = row, np.arange(len(row)) - np.searchsorted(row, row)
        codes, upper = np.full(found.shape, -1), np.full(found.shape, -np.inf)
        codes[place], upper[place] = code[order], pool[order]
        return _Named(codes, upper, self._pooled(last), n_visits)

    def _evaluated(self, X: Matrix, named: _Named, k: int, least: float) -> tuple[Found, FloatArray]:
        """The `k` best of the classes named, and the rank that others must exceed."""
        codes, log_proba = np.full((X.shape[0], 0), -1), np.empty((X.shape[0], 0))
        n_visits, bar, begin = np.zeros(X.shape[0], dtype=np.intp), np.full(X.shape[0], least), 0
        width = _EVALUATED * k
        upper = self._bound(named.upper)  # descends, as the order of bounds is that of the pools
        while begin < upper.shape[1]:
            some = np.where(
                upper[:, begin : begin + width] >= bar[:, None], named.codes[:, begin : begin + width], -1
            )
            active = np.flatnonzero((some >= 0).any(axis=1))
            if not len(active):
                break
            values = np.full(some.shape, -np.inf)
            values[active], more = self.log_proba_of(X[active], some[active])
            n_visits[active] += more
            codes, log_proba = np.hstack([codes, some]), np.hstack([log_proba, values])
            codes, log_proba, rank = self._first(codes, log_proba, k, least)
            if rank.shape[1] == k:
                bar = np.maximum(rank[:, -1], least)
            begin += width
        short = ((0, 0), (0, k - codes.shape[1]))
        codes, log_proba = (
            np.pad(codes, short, constant_values=-1),
            np.pad(log_proba, short, constant_values=-np.inf),
        )
        return Found(codes, log_proba, n_visits), bar

    def _first(
        self, codes: IntArray, log_proba: FloatArray, k: int, least: float
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """The `k` highest ranking classes of each row, equals by their codes, and their ranks."""
        rank = self._rank(codes, log_proba)
        codes = np.where(rank >= least, codes, -1)
        rank = np.where(codes >= 0, rank, -np.inf)
        order = np.lexsort((codes, -rank), axis=1)[:, :k]
        return tuple(np.take_along_axis(each, order, axis=1) for each in (codes, log_proba, rank))  # type: ignore[return-value]

    def _by_tree(self, X: Matrix, codes: IntArray) -> tuple[FloatArray, IntArray]:
        parts = [tree.log_proba_of(X, codes) for tree in self.trees]
        return np.stack([part[0] for part in parts]), np.sum([part[1] for part in parts], axis=0)

    def _pooled(self, by_tree: FloatArray) -> FloatArray:
        if self.is_geometric:
            return np.asarray(by_tree.mean(axis=0))
        with np.errstate(divide="ignore"):
            return np.asarray(logsumexp(by_tree, axis=0) - np.log(len(by_tree)))

    def _rank(self, codes: IntArray, log_proba: FloatArray) -> FloatArray:
        """Rank of classes; minus infinity for codes of -1."""
        if self.is_calibrated:
            log_proba = self.slope[codes] * np.maximum(log_proba, LOWEST) + self.bias[codes]
        return np.where(codes >= 0, log_proba, -np.inf)

    def _bound(self, log_proba: FloatArray) -> FloatArray:
        """Highest rank of a class with at most this log-probability."""
        if not self.is_calibrated:
            return log_proba
        return np.asarray(self.slope.min() * np.maximum(log_proba, LOWEST) + self.bias.max())
