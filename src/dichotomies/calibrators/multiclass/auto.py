"""The calibrator that predicts best: chosen by cross-validation on the calibration rows."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dichotomies.calibrators.multiclass._folds import balanced_folds
from dichotomies.calibrators.multiclass.base import MULTICLASS, MulticlassCalibrator
from dichotomies.persistence import Estimator, savable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dichotomies._common.typing import FloatArray, IntArray
    from dichotomies.calibrators.multiclass._rows import CalibrationRows


@savable("no-calibration", Estimator())
class NoCalibration(MulticlassCalibrator):
    """Leaves probabilities as they are, but for minus infinity, which it reads as all calibrators do."""

    def fit_rows(self, rows: CalibrationRows) -> None:
        """Nothing to learn."""

    def scores(self, x: FloatArray) -> FloatArray:
        """The log-probabilities."""
        return x


@MULTICLASS.register("auto")
class AutoCalibration(MulticlassCalibrator):
    """The simplest of several calibrators that is as good as the best, by cross-validated NLL.

    Every candidate is fitted on the other folds and judged on each fold. Candidates are ordered from
    simple to rich; a richer one replaces a simpler one only if its mean NLL is lower by more than one
    standard error of the difference, so that few rows choose something simple, or nothing at all.
    Folds are dealt out without chance, and equal rows stay together.

    Parameters
    ----------
    candidates : sequence of names, default=("none", "temperature", "vector", "isotonic")
        From simple to rich; "none" leaves the probabilities as they are.
    cv : int, default=3
        Number of folds.

    Attributes
    ----------
    chosen_ : str
        The candidate used.
    nll_ : dict
        Cross-validated NLL of each candidate, in nats for each row; empty if there were too few rows.
    calibrator_ : MulticlassCalibrator
        The chosen one, fitted to all rows.

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

    def __init__(
        self, *, candidates: Sequence[str] = ("none", "temperature", "vector", "isotonic"), cv: int = 3
    ) -> None:
        self.candidates = candidates
        self.cv = cv

    def fit_rows(self, rows: CalibrationRows) -> None:
        """Judge the candidates, choose, and fit the chosen one to all rows."""
        fold = balanced_folds(rows, self.cv)
        used = [k for k in range(self.cv) if _usable(rows, fold, k)]
        self.nll_: dict[str, float] = {}
        self.chosen_ = self.candidates[0]
        if len(used) == self.cv:
            self._choose(rows, {name: self._held_out(name, rows, fold) for name in self.candidates})
        self.calibrator_ = _create(self.chosen_).fit_on(rows)
        self.n_iter_, self.converged_ = self.calibrator_.n_iter_, True  # the chosen one has warned

    def _choose(self, rows: CalibrationRows, loss: dict[str, FloatArray]) -> None:
        total = rows.total_weight
        self.nll_ = {name: float(rows.weight @ each) / total for name, each in loss.items()}
        for name in self.candidates[1:]:
            gain = loss[self.chosen_] - loss[name]
            mean = float(rows.weight @ gain) / total
            error = np.sqrt(float(rows.weight @ (gain - mean) ** 2)) / total
            if mean > error:
                self.chosen_ = name

    def _held_out(self, name: str, rows: CalibrationRows, fold: IntArray) -> FloatArray:
        """Negative log-probability of each row's class, by a calibrator that has not seen its fold."""
        loss = np.empty(len(fold))
        for k in range(self.cv):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                calibrator = _create(name).fit_on(rows.take(fold != k))
            held_out = fold == k
            log_proba = calibrator.predict_log_proba(rows.raw[held_out])
            loss[held_out] = -log_proba[np.arange(len(log_proba)), rows.codes[held_out]]
        return loss

    def scores(self, x: FloatArray) -> FloatArray:
        """Those of the chosen calibrator."""
        return self.calibrator_.scores(x)


def _create(name: str) -> MulticlassCalibrator:
    return NoCalibration() if name == "none" else MULTICLASS.create(name)


def _usable(rows: CalibrationRows, fold: IntArray, k: int) -> bool:
    """Whether there is something to learn from outside the fold, and something to judge inside."""
    return bool(rows.weight[fold == k].any() and rows.weight[fold != k].any())
