"""Selection of a calibrator, or none, by cross-validated NLL."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dichotomies._common.best_of import simplest_of
from dichotomies._common.typing import FloatArray, IntArray
from dichotomies.calibrators.multiclass._calibration_rows import CalibrationRows
from dichotomies.calibrators.multiclass._folds import balanced_folds
from dichotomies.calibrators.multiclass.base import MULTICLASS, MulticlassCalibrator
from dichotomies.persistence import Estimator, savable
from dichotomies.tree import ClassTree

#: Candidates, the simplest first.
CANDIDATES = ("none", "temperature", "vector", "vector-odds", "nested", "vector-nested")
#: Share of the best NLL that a simpler candidate may cost.
_NEARLY = 0.005
#: Rows times classes up to which candidates are refitted in full without each fold.
_REFITTED_IN_FULL = 2**21


@savable("no-calibration", Estimator())
class NoCalibration(MulticlassCalibrator):
    """No calibration: probabilities stay unchanged, except that log-probabilities below -100 become -100."""

    def fit_rows(self, rows: CalibrationRows) -> None:
        """Do nothing."""

    def slope_and_bias(self) -> tuple[FloatArray, FloatArray]:
        """Return 1 and 0 for every class."""
        return np.ones(self.n_classes_), np.zeros(self.n_classes_)

    def scores(self, x: FloatArray) -> FloatArray:
        """Return the log-probabilities."""
        return x


@MULTICLASS.register("auto")
class AutoCalibration(MulticlassCalibrator):
    """The best of several calibrators by cross-validated NLL.

    The simplest candidate is taken whose NLL is above the best by no more than a standard error of the
    difference, and by no more than half a percent. Folds are deterministic, and equal rows are in the same
    fold. As the external calibration of a classifier, it is chosen together with the internal one, see
    `dichotomies.training.calibration_choice`.

    Parameters
    ----------
    candidates : sequence of str
        Names of multiclass calibrators, the simplest first; "none" leaves the probabilities unchanged. By
        default "none", "temperature", "vector", "vector-odds", "nested" and "vector-nested".
    cv : int, default=5
        Number of folds.
    tree : ClassTree, default=None
        For "nested" and "vector-nested": see `NestedCalibration`.

    Attributes
    ----------
    chosen_ : str
        Name of the selected candidate.
    nll_ : dict
        Cross-validated NLL of each candidate, in nats per row; empty if there are too few rows.
    calibrator_ : MulticlassCalibrator
        The selected calibrator, fitted to all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.calibrators.multiclass import MULTICLASS
    >>> rng = np.random.default_rng(0)
    >>> log_proba = np.log(rng.dirichlet([1, 1, 1], size=500))
    >>> y = np.array([rng.choice(3, p=p) for p in np.exp(log_proba)])
    >>> MULTICLASS.create("auto").fit(log_proba, y).chosen_
    'none'
    >>> MULTICLASS.create("auto").fit(3 * log_proba, y).chosen_
    'temperature'
    """

    block_bytes = 2**22  # as nested calibration needs

    def __init__(
        self, *, candidates: Sequence[str] = CANDIDATES, cv: int = 5, tree: ClassTree | None = None
    ) -> None:
        self.candidates = candidates
        self.cv = cv
        self.tree = tree

    def fit_rows(self, rows: CalibrationRows) -> None:
        """Score the candidates, select one and fit it to all rows."""
        fold = balanced_folds(rows, self.cv)
        used = [k for k in range(self.cv) if _usable(rows, fold, k)]
        self.nll_: dict[str, float] = {}
        self.chosen_ = self.candidates[0]
        fitted: dict[str, MulticlassCalibrator] = {}
        if len(used) == self.cv:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                candidates = {name: self._create(name) for name in self.candidates}
                in_full = rows.raw.size <= _REFITTED_IN_FULL
                if not in_full:  # refits start from fits to all rows
                    fitted = {name: each.fit_on(rows) for name, each in candidates.items()}
                held_out = {
                    name: each.held_out_on(rows, fold, in_full=in_full) for name, each in candidates.items()
                }
                losses = {name: each.loss for name, each in held_out.items()}
            weight = _judged(rows, fold)
            self.nll_ = {name: float(weight @ loss) / float(weight.sum()) for name, loss in losses.items()}
            self.chosen_ = simplest_of(losses, weight, _NEARLY)
        self.calibrator_ = fitted.get(self.chosen_) or self._create(self.chosen_).fit_on(rows)
        self.n_iter_, self.converged_ = self.calibrator_.n_iter_, self.calibrator_.converged_

    def _create(self, name: str) -> MulticlassCalibrator:
        if name == "none":
            return NoCalibration()
        return with_tree(MULTICLASS.create(name), self.tree)

    def grown_tree(self) -> ClassTree | None:
        """Return the tree of the selected calibrator."""
        return self.calibrator_.grown_tree()

    def slope_and_bias(self) -> tuple[FloatArray, FloatArray] | None:
        """Return those of the selected calibrator."""
        return self.calibrator_.slope_and_bias()

    def scores(self, x: FloatArray) -> FloatArray:
        """Return the scores of the selected calibrator."""
        return self.calibrator_.scores(x)


def with_tree(calibrator: MulticlassCalibrator, tree: ClassTree | None) -> MulticlassCalibrator:
    """Give a calibrator a tree, unless it has one or uses none."""
    if tree is not None and calibrator.get_params(deep=False).get("tree", tree) is None:
        calibrator.set_params(tree=tree)
    return calibrator


def _judged(rows: CalibrationRows, fold: IntArray) -> FloatArray:
    """Return the weights of the rows whose class is in other folds too, if there are any.

    The others are of classes that the refits without their fold do not know, but the final calibrator does.
    """
    cell = rows.codes * (fold.max() + 1) + fold
    own = np.bincount(cell, rows.weight)[cell]
    weight = np.where(rows.class_weight[rows.codes] > own, rows.weight, 0.0)
    return weight if weight.any() else rows.weight


def _usable(rows: CalibrationRows, fold: IntArray, k: int) -> bool:
    """Return True if the fold has rows to score and the other folds have rows to fit."""
    return bool(rows.weight[fold == k].any() and rows.weight[fold != k].any())
