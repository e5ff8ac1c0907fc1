"""`CalibratedClassifier`: a fitted scikit-learn classifier followed by a multiclass calibrator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from dichotomies.calibrators.multiclass import MULTICLASS, MulticlassCalibrator
from dichotomies.persistence import Estimator, savable, save
from dichotomies.persistence.checks import Array, Part, Such

if TYPE_CHECKING:
    import os

    import numpy.typing as npt

    from dichotomies._common.typing import FloatArray, LabelArray, Matrix


@savable(
    "calibrated-classifier",
    Estimator(),
    calibrator_=Part(MulticlassCalibrator, "n_classes"),
    classes_=Array("label", "n_classes"),
    estimator=Such(lambda it: hasattr(it, "predict_log_proba") or hasattr(it, "predict_proba"), "predicts"),
)
class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Calibrate a fitted classifier on held-out rows.

    The classifier is never refitted. `sklearn.base.clone` returns an unfitted copy, as always; wrap the
    classifier in `sklearn.frozen.FrozenEstimator` if the copy must stay fitted, as in cross-validation of the
    calibrator alone.

    Parameters
    ----------
    estimator : fitted scikit-learn classifier
        It must have `predict_log_proba` or `predict_proba`.
    method : str or MulticlassCalibrator, default="vector"
        The name of a multiclass calibrator, or an instance, of which a clone is fitted.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in the classifier's order.
    calibrator_ : MulticlassCalibrator
        The fitted calibrator.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.metrics import log_loss
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from dichotomies.estimators.calibrated import CalibratedClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = GaussianNB().fit(X[:800], y[:800])
    >>> calibrated = CalibratedClassifier(clf).fit(X[800:1200], y[800:1200])
    >>> before, after = (log_loss(y[1200:], c.predict_proba(X[1200:])) for c in (clf, calibrated))
    >>> bool(after < 0.6 * before)
    True
    """

    def __init__(self, estimator: Any, method: str | MulticlassCalibrator = "vector") -> None:
        self.estimator = estimator
        self.method = method

    def fit(
        self, X: Matrix, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> CalibratedClassifier:
        """Fit the calibrator on rows the classifier was not trained on.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
        y : array of shape (n_rows,)
            Labels, all of them known to the classifier.
        sample_weight : array of shape (n_rows,), optional
            Weight of each row.

        Returns
        -------
        self
        """
        check_is_fitted(self.estimator)
        self.classes_: LabelArray = np.asarray(self.estimator.classes_)
        calibrator: MulticlassCalibrator = clone(MULTICLASS.resolve(self.method, MulticlassCalibrator))
        self.calibrator_ = calibrator.fit(
            self._uncalibrated(X), _known(y, self.classes_), sample_weight, classes=self.classes_
        )
        return self

    def predict_log_proba(self, X: Matrix) -> FloatArray:
        """Logarithms of the calibrated class probabilities, columns in the order of `classes_`."""
        check_is_fitted(self, "calibrator_")
        return self.calibrator_.predict_log_proba(self._uncalibrated(X))

    def predict_proba(self, X: Matrix) -> FloatArray:
        """Calibrated class probabilities, columns in the order of `classes_`."""
        log_proba = self.predict_log_proba(X)
        return np.exp(log_proba, out=log_proba)

    def predict(self, X: Matrix) -> LabelArray:
        """Predict the most probable class of each row, after calibration."""
        check_is_fitted(self, "calibrator_")
        labels: LabelArray = self.classes_[self.predict_log_proba(X).argmax(axis=1)]
        return labels

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the classifier and its calibrator to a file, which `dichotomies.load` reads.

        Parameters
        ----------
        path : str or path
            One file of arrays (safetensors) and JSON, without pickle, written atomically.
        """
        check_is_fitted(self, "calibrator_")
        save(self, path)

    def _uncalibrated(self, X: Matrix) -> FloatArray:
        """Log-probabilities of the classifier; minus infinity for probability 0, which calibrators accept."""
        with np.errstate(divide="ignore"):
            if hasattr(self.estimator, "predict_log_proba"):
                return np.asarray(self.estimator.predict_log_proba(X))
            if hasattr(self.estimator, "predict_proba"):
                return np.log(np.asarray(self.estimator.predict_proba(X), dtype=np.float64))
        raise TypeError(
            f"{type(self.estimator).__name__} has neither predict_log_proba nor predict_proba, "
            "so there are no probabilities to calibrate."
        )


def _known(y: npt.ArrayLike, classes: LabelArray) -> LabelArray:
    labels = np.asarray(y)
    unknown = labels[~np.isin(labels, classes)]
    if len(unknown):
        raise ValueError(
            f"y has the label {unknown[:1].tolist()[0]!r}, which the classifier has not been trained on; "
            f"it knows {len(classes)} classes. Leave such rows out of the calibration."
        )
    return labels
