"""`CalibratedClassifier`: any scikit-learn classifier followed by a multiclass calibrator and a tree."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_is_fitted,
    column_or_1d,
)

from dichotomies._common import DOCS
from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
from dichotomies._common.validation import plain_labels, row_weights
from dichotomies.calibrators.multiclass import MULTICLASS, MulticlassCalibrator, calibration_rows
from dichotomies.calibrators.multiclass._calibration_rows import normalised
from dichotomies.calibrators.multiclass._class_tree import class_tree
from dichotomies.calibrators.multiclass.auto import AutoCalibration, with_tree
from dichotomies.calibrators.multiclass.base import checked_log_proba
from dichotomies.estimators.partial_answers import PartialAnswers
from dichotomies.inference.conformal import ConformalRows
from dichotomies.inference.fitted import FittedForest, GivenProbabilities
from dichotomies.learners import takes_weight
from dichotomies.persistence import Estimator, savable, save
from dichotomies.persistence.checks import Array, Optional, Part, Such
from dichotomies.rows.folds import fold_of_rows
from dichotomies.structures.base import resolve as structure_of
from dichotomies.training.external import Calibration, name_of
from dichotomies.tree import ClassTree
from dichotomies.tree.forest import Forest


@savable(
    "calibrated-classifier",
    Estimator(),
    calibrator_=Part(MulticlassCalibrator, "n_classes"),
    classes_=Array("label", "n_classes", same="classes"),
    model_=Optional(Part(FittedForest, "n_classes", "classes", n_features="n_classes"), may_be_missing=True),
    conformal_=Optional(Part(ConformalRows, "n_classes"), may_be_missing=True),
    class_count_=Optional(Array("integer", "n_classes"), may_be_missing=True),
    fitted_estimator=Such(
        lambda it: hasattr(it, "predict_log_proba") or hasattr(it, "predict_proba"), "predicts"
    ),
)
class CalibratedClassifier(PartialAnswers, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Calibrate a classifier: one that is fitted on held-out rows, any other by cross-fitting.

    A fitted classifier is never refitted; its calibrator is fitted on the rows given to `fit`, which must be
    others than those it was trained on. Of a classifier that is not fitted, clones are trained on folds of
    the rows, the calibrator is fitted on the probabilities that each row has from the clone that has not seen
    it, and a clone trained on all rows predicts.

    `sklearn.base.clone` returns an unfitted copy, as always; wrap the classifier in
    `sklearn.frozen.FrozenEstimator` if the copy must stay fitted, as in cross-validation of the calibrator
    alone.

    The probabilities of any classifier imply log-odds at the nodes of a tree over its classes. So all answers
    of nested dichotomies are to be had for any classifier: prediction sets, groups of classes as deep as the
    evidence goes, diagnostics and the report.

    Parameters
    ----------
    estimator : scikit-learn classifier
        It must have `predict_log_proba` or `predict_proba`.
    method : str or MulticlassCalibrator, default="auto"
        The name of a multiclass calibrator, or an instance, of which a clone is fitted. "auto" compares
        several by cross-validation, nested calibration among them.
    cv : int or splitter, default=5
        Folds for a classifier that is not fitted; the rows of each class are dealt to them in turn.
    tree : ClassTree, nested lists of labels, "hierarchy" or a Hierarchy, default=None
        A tree over the classes, for nested calibration and for answers; "hierarchy" reads it from labels such
        as "animal;bird;owl". None: grown from the probabilities of the calibration rows.
    n_jobs : int, default=None
        Number of threads for answers.

    Attributes
    ----------
    estimator_ : scikit-learn classifier
        The clone that was trained on all rows; missing if `estimator` was fitted before.
    classes_ : ndarray of shape (n_classes,)
        The labels, in the classifier's order.
    calibrator_ : MulticlassCalibrator
        The fitted calibrator.
    tree_ : ClassTree
        The tree over the classes.
    model_ : FittedForest
        The tree and the calibrator, as diagnostics and answers read them: its features are the classifier's
        log-probabilities.

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
    >>> cross_fitted = CalibratedClassifier(GaussianNB()).fit(X[:1200], y[:1200])
    >>> log_loss(y[1200:], cross_fitted.predict_proba(X[1200:])) < before
    True
    """

    _doc_link_module = "dichotomies"
    _doc_link_template = DOCS + "calibration.md"

    def __init__(
        self,
        estimator: Any,
        method: str | MulticlassCalibrator = "auto",
        *,
        cv: Any = 5,
        tree: ClassTree | Sequence[Any] | str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.tree = tree
        self.n_jobs = n_jobs

    def fit(
        self, X: Matrix, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> CalibratedClassifier:
        """Fit the calibrator, and the classifier unless it is fitted already.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
            Rows that a fitted classifier was not trained on.
        y : array of shape (n_rows,)
            Labels, all of them known to a fitted classifier.
        sample_weight : array of shape (n_rows,), optional
            Weight of each row.

        Returns
        -------
        self
        """
        calibrator: MulticlassCalibrator = clone(MULTICLASS.resolve(self.method, MulticlassCalibrator))
        self.__dict__.pop("conformal_", None)
        if y is None:
            raise ValueError("CalibratedClassifier requires y to be passed, but the target y is None.")
        labels = column_or_1d(plain_labels(y), warn=True)
        X, labels = indexable(X, labels)
        _check_n_features(self, X, reset=True)
        _check_feature_names(self, X, reset=True)
        checked = row_weights(sample_weight, len(labels))
        weight = None if sample_weight is None else checked
        if _is_fitted(self.estimator):
            self.__dict__.pop("estimator_", None)
            log_proba, labels = self._uncalibrated(X), _known(labels, self.estimator.classes_)
        else:
            log_proba, rows = self._cross_fit(X, labels, weight)
            labels, weight = labels[rows], None if weight is None else weight[rows]
        self.classes_: LabelArray = np.asarray(self.fitted_estimator.classes_)
        held_out = calibration_rows(log_proba, labels, weight, self.classes_)
        self.class_count_ = np.bincount(held_out.codes, minlength=len(self.classes_))
        given = None if self.tree is None else self._given_tree()
        self.calibrator_ = with_tree(calibrator, given).fit_on(held_out)
        shape = given or self.calibrator_.grown_tree() or class_tree(held_out)
        tree = ClassTree(self.classes_[shape.leaf_order], shape.split_depth, self.classes_)
        self.model_ = FittedForest(Forest.of([tree]), GivenProbabilities(tree), external=self.calibrator_)
        return self

    @property
    def tree_source(self) -> str:
        """Origin of the tree, for the report."""
        return "grown from the classifier's probabilities" if self.tree is None else "given"

    @property
    def base_estimator(self) -> Any:
        """The classifier that is calibrated."""
        return self.fitted_estimator

    @property
    def learner_(self) -> str:
        """Description of the training."""
        return "one model of all classes, " + ("cross-fitted" if hasattr(self, "estimator_") else "as given")

    @property
    def external_calibrator_(self) -> MulticlassCalibrator:
        """The fitted calibrator, by the name that nested dichotomies give it."""
        return self.calibrator_

    @property
    def calibration_(self) -> Calibration:
        """Name of the calibrator, and the comparison by which "auto" has chosen it."""
        if not isinstance(self.calibrator_, AutoCalibration):
            return Calibration(external=name_of(self.calibrator_))
        nll = {("none", name): nll for name, nll in self.calibrator_.nll_.items()}
        return Calibration("none", self.calibrator_.chosen_, nll, int(self.class_count_.sum()))

    def _given_tree(self) -> ClassTree:
        """Return the tree that the user has given, over the classes."""
        if isinstance(self.tree, str) and self.tree != "hierarchy":
            raise ValueError(
                "tree must be a ClassTree, nested lists of the labels, 'hierarchy' or None, which grows one "
                f"from the probabilities; got {self.tree!r}."
            )
        return structure_of(self.tree).grow(None, self.classes_).over(self.classes_)

    @property
    def tree_(self) -> ClassTree:
        """The tree over the classes."""
        check_is_fitted(self, "calibrator_")
        return self._answering().tree

    def validated_rows(self, X: Matrix) -> FloatArray:
        """Return the classifier's log-probabilities of the rows `X`, the features of `model_`."""
        check_is_fitted(self, "calibrator_")
        self._answering()
        return normalised(checked_log_proba(self._uncalibrated(X), len(self.classes_)))

    def _answering(self) -> FittedForest:
        if not hasattr(self, "model_"):
            raise NotFittedError(
                "This CalibratedClassifier was saved by an earlier version, which grew no tree: it has "
                "probabilities alone. Fit it again for other answers."
            )
        return self.model_

    def _cross_fit(
        self, X: Matrix, labels: LabelArray, weight: FloatArray | None
    ) -> tuple[FloatArray, IntArray]:
        """Train a clone on all rows and one without each fold; return out-of-fold log-probabilities."""
        if weight is not None and not takes_weight(self.estimator):
            raise TypeError(f"sample_weight was given, but {_name(self.estimator)} cannot be fitted with it.")
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"A classifier needs at least two classes, but y has one class: {classes[0]!r}.")
        self.estimator_ = _trained(self.estimator, X, labels, weight)
        fold = fold_of_rows(codes, self.cv, np.random.RandomState(0))
        log_proba, is_known = np.full((len(codes), len(classes)), -np.inf), np.zeros(len(codes), dtype=bool)
        for f in range(int(fold.max()) + 1):
            seen, unseen = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
            columns = np.unique(codes[seen])
            is_known[unseen] = np.isin(codes[unseen], columns)
            if not is_known[unseen].any():
                continue
            part = _trained(
                self.estimator,
                _safe_indexing(X, seen),
                labels[seen],
                None if weight is None else weight[seen],
            )
            log_proba[np.ix_(unseen, columns)] = _log_proba(part, _safe_indexing(X, unseen))
        known = np.flatnonzero(is_known)
        if not len(known):
            raise ValueError(
                "No row can be used for calibration: no class is in two folds. A class needs two rows, and "
                "rows that are sorted by class need folds that shuffle them, as cv=5 does."
            )
        return log_proba[known], known

    @property
    def fitted_estimator(self) -> Any:
        """The classifier that predicts: `estimator_`, or `estimator` if it was fitted before."""
        return getattr(self, "estimator_", self.estimator)

    def predict_log_proba(self, X: Matrix) -> FloatArray:
        """Logarithms of the calibrated class probabilities of `X`, columns in the order of `classes_`."""
        check_is_fitted(self, "calibrator_")
        return self.calibrator_.predict_log_proba(self._uncalibrated(X))

    def predict_proba(self, X: Matrix) -> FloatArray:
        """Calibrated class probabilities of `X`, columns in the order of `classes_`."""
        log_proba = self.predict_log_proba(X)
        return np.exp(log_proba, out=log_proba)

    def predict(self, X: Matrix) -> LabelArray:
        """Predict the most probable class of each row of `X`, after calibration."""
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
        return _log_proba(self.fitted_estimator, X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return hasattr(estimator, "classes_")


def _name(estimator: Any) -> str:
    return type(estimator).__name__


def _trained(estimator: Any, X: Matrix, labels: LabelArray, weight: FloatArray | None) -> Any:
    return clone(estimator).fit(X, labels, **({} if weight is None else {"sample_weight": weight}))


def _log_proba(estimator: Any, X: Matrix) -> FloatArray:
    """Log-probabilities of a classifier; minus infinity for probability 0, which calibrators accept."""
    with np.errstate(divide="ignore"):
        if hasattr(estimator, "predict_log_proba"):
            return np.asarray(estimator.predict_log_proba(X))
        if hasattr(estimator, "predict_proba"):
            return np.log(np.asarray(estimator.predict_proba(X), dtype=np.float64))
    raise TypeError(
        f"{_name(estimator)} has neither predict_log_proba nor predict_proba, so there are no probabilities "
        "to calibrate."
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
