"""What the tree and the ensemble have in common: the scikit-learn face; it validates, wires and delegates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from dichotomies._common.parallel import say
from dichotomies.calibrators.binary import BINARY, BinaryCalibrator
from dichotomies.calibrators.multiclass import MULTICLASS, MulticlassCalibrator
from dichotomies.inference.prediction import log_proba_of, most_probable, top_k
from dichotomies.learners import NodeTask, choose, input_dtypes
from dichotomies.persistence import save
from dichotomies.persistence.checks import Array, Optional, Part, Size, declares, expect
from dichotomies.report import make
from dichotomies.structures import GrowingTask
from dichotomies.training.judging import LearnerJudge
from dichotomies.training.plan import Plan
from dichotomies.training.train import train

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import numpy.typing as npt

    from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
    from dichotomies.inference.prediction import Model
    from dichotomies.report import Report
    from dichotomies.training.train import Trained
    from dichotomies.tree.forest import Forest


#: The declaration of a fitted multiclass calibrator, or None.
CALIBRATOR = Optional(Part(MulticlassCalibrator, "n_classes"))


@declares(
    learner_=str,
    n_features_in_=Size("n_features"),
    feature_names_in_=Optional(Array("label", "n_features"), may_be_missing=True),
    classes_=Array("label", "n_classes", same="classes"),
    external_calibrator_=CALIBRATOR,
    n_jobs=Optional(Integral),
)
class DichotomyEstimator(ClassifierMixin, MetaEstimatorMixin, BaseEstimator, ABC):
    """Base class of the classifiers made of nested dichotomies.

    A subclass has the parameters that `_plan` reads, and says how trees are grown and what is kept of them.
    """

    estimator: Any
    internal_calibration: Any
    external_calibration: Any
    cv: Any
    ensemble: bool
    calibrated_nodes: Any
    calibration_size: float | str
    learner: str
    n_jobs: int | None
    random_state: Any
    verbose: bool | int

    # ------------------------------------------------------------------ what a subclass says

    @abstractmethod
    def _grow(self, task: GrowingTask, rng: Any) -> Forest:
        """Grow the trees."""

    @abstractmethod
    def _keep(self, forest: Forest, trained: Trained) -> None:
        """Set the fitted attributes."""

    @property
    @abstractmethod
    def _model(self) -> Model:
        """The fitted classifier as it predicts."""

    def _bags(self, codes: IntArray, weight: FloatArray | None, rng: Any) -> list[FloatArray] | None:  # noqa: ARG002
        """What the rows weigh for each tree, where trees have rows of their own."""
        return None

    # ------------------------------------------------------------------ training

    def fit(self, X: Matrix, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Grow the tree, or trees, and train the nodes.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
            The features.
        y : array of shape (n_rows,)
            The labels: strings, integers or booleans; at least two different ones.
        sample_weight : array of shape (n_rows,), optional
            Weights, passed on to every node.

        Returns
        -------
        self
        """
        before = self.__dict__.copy()
        try:
            return self._fit(X, y, sample_weight)
        except BaseException:  # what was fitted before stays as it was
            self.__dict__ = before
            raise

    def _fit(self, X: Matrix, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> Self:
        plan = self._plan()
        X, codes = self._validated(X, y)
        weight = self._validated_weight(sample_weight, X)
        rng = check_random_state(self.random_state)
        node_weight = weight if self._nodes_get_weight(weight) else None
        judge = LearnerJudge(plan, X, codes, node_weight)
        forest = self._grow(GrowingTask(X, codes, self.classes_, weight, judge), rng)
        task = NodeTask(forest.trees[0], X, codes, node_weight)
        if self.verbose:
            say(plan.learner.description)
        self._keep(forest, train(plan, forest, task, rng, self._bags(codes, node_weight, rng)))
        self.learner_ = plan.learner.description
        return self

    def _plan(self, **others: Any) -> Plan:
        """The parameters, names resolved and values checked."""
        internal = self.internal_calibration
        return Plan(
            learner=choose(self._base(), self.learner, calibrated=internal is not None),
            internal=None if internal is None else BINARY.resolve(internal, BinaryCalibrator),
            external=multiclass_calibrator(self.external_calibration),
            cv=self.cv,
            ensemble=self.ensemble,
            calibrated_nodes=self.calibrated_nodes,
            calibration_size=self.calibration_size,
            n_jobs=self.n_jobs,
            verbose=bool(self.verbose),
            **others,
        )

    def _validated(self, X: Matrix, y: Any) -> tuple[Matrix, IntArray]:
        """Check X and y; set `classes_` and return the class code of each row."""
        X, y = validate_data(self, X, y, **self._accepted())
        if y.dtype.kind not in "USbiu":  # strings, booleans and integers always are labels
            check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"A classifier needs at least two classes, but y has only one class: {only!r}.")
        return X, codes

    def _validated_weight(self, sample_weight: npt.ArrayLike | None, X: Matrix) -> FloatArray | None:
        if sample_weight is None:
            return None
        weight: FloatArray = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        return weight

    def _accepted(self) -> dict[str, Any]:
        """What X may be: what the base learner takes."""
        accepts = get_tags(self._base()).input_tags
        return {
            "accept_sparse": "csr" if accepts.sparse else False,
            "dtype": input_dtypes(self._base()),
            "order": "C",  # rows are what nodes and chunks take
            "ensure_all_finite": not accepts.allow_nan,
        }

    def _base(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _nodes_get_weight(self, weight: FloatArray | None) -> bool:
        """Whether weights go to the nodes: always, unless metadata routing says they should not."""
        if weight is None or not get_config()["enable_metadata_routing"]:
            return True
        return "sample_weight" in process_routing(self, "fit", sample_weight=weight).estimator.fit

    # ------------------------------------------------------------------ prediction

    def predict_log_proba(self, X: Matrix) -> FloatArray:
        """Logarithms of the class probabilities, exact even where the probability underflows.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of `classes_`.
        """
        X = self._validated_for_prediction(X)
        return log_proba_of(self._model, X, self.n_jobs)

    def predict_proba(self, X: Matrix) -> FloatArray:
        """Class probabilities; every row sums to 1.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of `classes_`.
        """
        log_proba = self.predict_log_proba(X)
        return np.exp(log_proba, out=log_proba)

    def predict(self, X: Matrix) -> LabelArray:
        """The most probable class of each row.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        X = self._validated_for_prediction(X)
        best = most_probable(self._model, X, self.n_jobs)
        labels: LabelArray = self.classes_[best]
        return labels

    def predict_top_k(self, X: Matrix, k: int = 5) -> tuple[LabelArray, FloatArray]:
        """The most probable classes of each row and their probabilities, the most probable first.

        It holds no more than a few thousand rows of class probabilities at a time, however many rows there
        are.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
        k : int, default=5
            How many; all of them where there are fewer classes.

        Returns
        -------
        labels : ndarray of shape (n_rows, k)
        proba : ndarray of shape (n_rows, k)
        """
        check_whole(k, "k")
        X = self._validated_for_prediction(X)
        codes, log_proba = top_k(self._model, X, min(int(k), len(self.classes_)), self.n_jobs)
        labels: LabelArray = self.classes_[codes]
        return labels, np.exp(log_proba, out=log_proba)

    def report(
        self,
        X: Matrix,
        y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        examples: Sequence[object] | None = None,
    ) -> Report:
        """How far the probabilities can be trusted on these rows: one HTML page that opens offline.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
            Rows that the classifier has not seen.
        y : array of shape (n_rows,)
            Their labels.
        sample_weight : array of shape (n_rows,), optional
            Weights: 2 counts as the row twice.
        examples : sequence of length n_rows, optional
            What to call the rows on the page: names or texts.

        Returns
        -------
        Report
            Shows itself in a notebook; ``save(path)`` writes the page.
        """
        return make(self, X, y, sample_weight=sample_weight, examples=examples)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to a file, which `dichotomies.load` reads.

        Parameters
        ----------
        path : str or path
            One file of arrays (safetensors) and JSON, no pickle; it is replaced as a whole or not at all.
        """
        check_is_fitted(self)
        save(self, path)

    def check_relations(self, names: dict[str, Any]) -> None:
        """Raise unless there are classes and a base learner; see `dichotomies.persistence.checks`."""
        expect(names["n_classes"] > 1, "there are two classes or more")
        self._accepted()

    def _validated_for_prediction(self, X: Matrix) -> Matrix:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, **self._accepted())

    # ------------------------------------------------------------------ scikit-learn's protocols

    def get_metadata_routing(self) -> MetadataRouter:
        """Where `sample_weight` goes: this estimator uses it, and passes it to those that request it."""
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(
            estimator=self._base(), method_mapping=MethodMapping().add(caller="fit", callee="fit")
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        accepts = get_tags(self._base()).input_tags
        tags.input_tags.sparse = accepts.sparse
        tags.input_tags.allow_nan = accepts.allow_nan
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")


def check_whole(value: object, name: str) -> None:
    """Refuse anything but a whole number, 1 or more."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number, 1 or more, got {value!r}.")


def multiclass_calibrator(calibrator: Any) -> MulticlassCalibrator | None:
    """A calibrator, by its name or as it is; None without one."""
    return None if calibrator is None else MULTICLASS.resolve(calibrator, MulticlassCalibrator)
