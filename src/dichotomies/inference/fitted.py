"""`FittedForest`: trees, trained nodes and calibrators, which together give class probabilities."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._common.chunks import bytes_of_chunk, cached_rows, chunk_rows, in_chunks, row_slices
from dichotomies._common.parallel import Context
from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
from dichotomies._kernels.composition import class_log_proba, implied_log_odds
from dichotomies.calibrators.multiclass import MulticlassCalibrator
from dichotomies.inference.pooling import POOLINGS
from dichotomies.inference.scorers import base_scorers
from dichotomies.learners.base import SCORER
from dichotomies.persistence import savable
from dichotomies.persistence.checks import Array, Each, Optional, Part, Size, Such
from dichotomies.tree import ClassTree
from dichotomies.tree.forest import Forest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dichotomies.inference.forest_search import ForestSearch
    from dichotomies.inference.search import TreeSearch
    from dichotomies.learners import Scorer


#: Seconds per row and node, to see if a cluster pays.
_SECONDS = 1e-7

_CALIBRATOR = Optional(Part(MulticlassCalibrator, "n_classes"))


@savable(
    "fitted-forest",
    forest=Part(Forest, "n_trees", "classes", n_different="n_nodes"),
    n_classes=Size("n_classes", 2),
    scorer=SCORER,
    pooling=Such(POOLINGS.__contains__, "is a way to pool"),
    members=Each(_CALIBRATOR, "n_trees", may_be_empty=True),
    external=_CALIBRATOR,
)
@dataclass(frozen=True, eq=False)
class FittedForest:
    """One tree or several with trained nodes, and calibrators of their class probabilities.

    It predicts, is saved, and is the public view of a fitted estimator that diagnostics and reports read.
    A single tree is a forest of one.

    Attributes
    ----------
    forest : Forest
        The trees and their different nodes.
    scorer : Scorer
        Log-odds of the different nodes of all trees, with internal calibration where there is any.
    pooling : str
        Mean of the trees' probabilities, a name of `dichotomies.inference.pooling.POOLINGS`.
    members : sequence of MulticlassCalibrator or None
        Calibrators of the trees' outputs, one per tree, in models of earlier versions; otherwise empty.
    external : MulticlassCalibrator or None
        Calibrator of the only tree, or of the pool.
    """

    forest: Forest
    scorer: Scorer
    pooling: str = "geometric"
    members: Sequence[MulticlassCalibrator | None] = field(default_factory=list)
    external: MulticlassCalibrator | None = None

    # ------------------------------------------------------------------ views

    @property
    def tree(self) -> ClassTree:
        """The only tree, or the first, along which the pooled probabilities are decomposed."""
        return self.forest.trees[0]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.forest.n_classes

    @property
    def node_scorer(self) -> Scorer:
        """Log-odds at the nodes of `tree` before external calibration.

        Those of a single tree are its nodes' own; those of several are implied by the pooled probabilities.
        """
        if len(self.forest.trees) == 1 and not self.members:
            return self.scorer
        return ImpliedScorer(self.tree, replace(self, external=None))

    @cached_property
    def search(self) -> TreeSearch | ForestSearch | None:
        """Search for the most probable classes; None for calibrators without bounds."""
        from dichotomies.inference.forest_search import ForestSearch  # take long to import
        from dichotomies.inference.search import TreeSearch

        if self.members or isinstance(self.scorer, GivenProbabilities):
            return None
        if len(self.forest.trees) > 1:
            return ForestSearch.of(self.forest, self.scorer, self.pooling, self.external)
        return TreeSearch.of(self.tree, self.scorer, self.external)

    # ------------------------------------------------------------------ class probabilities of a chunk

    def log_proba(self, X: Matrix, out: FloatArray | None = None) -> FloatArray:
        """Class log-probabilities of a chunk of rows, written to `out` if given."""
        out = np.empty((X.shape[0], self.n_classes)) if out is None else out
        n_rows, step = len(out), self._scored_rows()
        if step >= n_rows or not isinstance(X, np.ndarray):
            self._compose(self.scorer.log_odds(X), out, n_rows)
        else:
            begins = np.arange(step, n_rows - step + 1, step)  # no block of a few rows, which has its own way
            for some, into in zip(np.split(X, begins), np.split(out, begins), strict=True):
                self._compose(self.scorer.log_odds(some), into, n_rows)
        return out if self.external is None else self.external.predict_log_proba(out, out=out)

    def _scored_rows(self) -> int:
        """Number of dense rows to score at a time at least, so that their log-odds stay in the cache."""
        steps = [getattr(base, "rows_at_once", sys.maxsize) for base in base_scorers(self.scorer)]
        return cached_rows(self.forest.n_different, multiple_of=max(steps))

    def _compose(self, log_odds: FloatArray, out: FloatArray, n_rows: int) -> None:
        """Write class log-probabilities of some of `n_rows` rows, before external calibration."""
        if len(self.forest.trees) == 1:
            self._of_tree(0, log_odds, out, n_rows)
            return
        for rows in row_slices(len(out), cached_rows(_width(self.forest))):
            pool = POOLINGS[self.pooling](out[rows])
            for t in range(len(self.forest.trees)):
                pool.add(self._of_tree(t, log_odds[rows], n_rows=n_rows))
            pool.finish()

    def _of_tree(
        self, t: int, log_odds: FloatArray, out: FloatArray | None = None, n_rows: int | None = None
    ) -> FloatArray:
        """Class log-probabilities by one tree, with its own calibrator if it has one."""
        out = class_log_proba(self.forest.trees[t], self.forest.log_odds_of_tree(t, log_odds), out, n_rows)
        calibrator = self.members[t] if self.members else None
        return out if calibrator is None else calibrator.predict_log_proba(out, out=out)

    # ------------------------------------------------------------------ predictions for any number of rows

    def predict_log_proba(
        self, X: Matrix, n_jobs: int | None = None, dtype: type[np.floating[Any]] = np.float64
    ) -> FloatArray:
        """Class log-probabilities of rows, shape (n_rows, n_classes)."""
        out: FloatArray = np.empty((X.shape[0], self.n_classes), dtype=dtype)

        def predict(rows: slice) -> None:
            if out.dtype == np.float64:
                self.log_proba(X[rows], out[rows])
            else:
                out[rows] = self.log_proba(X[rows])

        if not self._on_cluster(FittedForest.log_proba, X, out, n_jobs):
            self.in_chunks(X, predict, n_jobs)
        return out

    def most_probable(self, X: Matrix, n_jobs: int | None = None) -> IntArray:
        """Code of the most probable class of each row."""
        best = np.empty(X.shape[0], dtype=np.intp)
        search = self.search if self.search is not None and self.search.is_worthwhile(X, 1) else None
        if search is None and self._on_cluster(FittedForest._highest, X, best, n_jobs):
            return best

        def predict(rows: slice) -> None:
            if search is None:
                best[rows] = self._highest(X[rows])
            else:
                found = search.best(X[rows], 1, most=search.most_visits(X)).codes[:, 0]
                lost = np.flatnonzero(found < 0)
                if len(lost):
                    found[lost] = self.log_proba(X[rows][lost]).argmax(axis=1)
                best[rows] = found

        self.in_chunks(X, predict, n_jobs)
        return best

    def _highest(self, X: Matrix) -> IntArray:
        """Code of the most probable class of each row of a chunk."""
        codes: IntArray = self.log_proba(X).argmax(axis=1)
        return codes

    def _on_cluster(self, function: Callable[..., Any], X: Matrix, out: Any, n_jobs: int | None) -> bool:
        """Write answers for chunks of rows to `out`; False where the work is to stay on this machine."""
        context, step = Context(n_jobs=n_jobs), chunk_rows(_width(self.forest))
        if X.ndim == 1 or X.shape[0] <= step:  # numbers of rows whose scores the model holds, or one task
            return False
        if not context.is_on_cluster(_SECONDS * X.shape[0] * self.forest.n_different):
            return False
        chunks = list(row_slices(X.shape[0], step))
        for i, answer in context.results(function, self, [(X[rows],) for rows in chunks]):
            out[chunks[i]] = answer
        return True

    def in_chunks(self, X: Matrix, predict: Callable[[slice], None], n_jobs: int | None) -> None:
        """Predict chunk by chunk: no more than a chunk of probabilities per worker is held at a time."""
        in_chunks(_width(self.forest), X.shape[0], predict, n_jobs)


def least_bytes(forest: Forest) -> int:
    """Least memory in which many rows can be predicted."""
    return bytes_of_chunk(_width(forest))


def _width(forest: Forest) -> int:
    """Numbers that are held of a row."""
    is_single = len(forest.trees) == 1
    return forest.n_different if is_single else forest.n_different + 2 * forest.n_classes


@savable("given-probabilities", tree=Part(ClassTree, "n_nodes"), n_features=Size("n_features"))
@dataclass(frozen=True, eq=False)
class GivenProbabilities:
    """Log-odds at a tree's nodes implied by class log-probabilities of another model, the features."""

    tree: ClassTree

    @property
    def n_features(self) -> int:
        """Number of classes, which are the features."""
        return self.tree.n_classes

    def log_odds(self, X: FloatArray) -> FloatArray:
        """Log-odds of going left for each row at each node."""
        return implied_log_odds(self.tree, X)

    def pair_log_odds(self, X: FloatArray, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        return self.log_odds(X)[rows, nodes]


@dataclass(frozen=True, eq=False)
class ImpliedScorer:
    """Log-odds at a tree's nodes that a model's class probabilities imply, whatever the model is.

    The NLL of any class probabilities is the sum of the NLLs of these log-odds along the path of the class.
    """

    tree: ClassTree
    model: FittedForest

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node."""
        return implied_log_odds(self.tree, self.model.log_proba(X))

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        return self.log_odds(X)[rows, nodes]


@savable(
    "conditioned-scorer",
    tree=Part(ClassTree, "n_nodes", n_classes="n_kept"),
    model=Part(FittedForest, "n_features", "n_classes"),
    columns=Array("integer", "n_kept", within=(0, "n_classes")),
)
@dataclass(frozen=True, eq=False)
class ConditionedScorer:
    """Log-odds at the nodes of a tree over some of a model's classes, implied by the model's probabilities.

    Attributes
    ----------
    tree : ClassTree
        Over the classes that are left.
    model : FittedForest
        Over all classes, with everything that calibrates it.
    columns : (n_kept,)
        Codes of the classes that are left.
    """

    tree: ClassTree
    model: FittedForest
    columns: IntArray

    def log_odds(self, X: Matrix) -> FloatArray:
        """Log-odds of going left for each row at each node."""
        left = np.ascontiguousarray(self.model.log_proba(X)[:, self.columns])
        return implied_log_odds(self.tree, left)

    def pair_log_odds(self, X: Matrix, rows: IntArray, nodes: IntArray) -> FloatArray:
        """Log-odds of going left for row ``rows[i]`` of `X` at node ``nodes[i]``."""
        return self.log_odds(X)[rows, nodes]


def conditioned(model: FittedForest, labels: LabelArray) -> FittedForest:
    """The model given that the class is none of the labels, exactly: a single tree without them."""
    scorer = model.scorer
    tree = model.tree.restrict(model.tree.classes[~np.isin(model.tree.classes, labels)])
    if isinstance(scorer, ConditionedScorer):  # forgotten before: one is enough
        model = scorer.model
    columns = np.flatnonzero(np.isin(model.tree.classes, tree.classes))
    return FittedForest(Forest.of([tree]), ConditionedScorer(tree, model, columns))
