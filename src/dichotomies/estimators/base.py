"""`DichotomyEstimator`: the scikit-learn face of nested dichotomies; it validates, wires and delegates."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, is_classifier
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from dichotomies._common import DOCS
from dichotomies._common.cluster import by_block, computed
from dichotomies._common.parallel import Context
from dichotomies._common.progress import CHOOSING, GROWING, TRAINING, Bar, say
from dichotomies._common.validation import namespace, to_host
from dichotomies.estimators.batch_fits import BatchFits
from dichotomies.estimators.partial_answers import PartialAnswers
from dichotomies.estimators.updates import Updates
from dichotomies.inference.conformal import ConformalRows
from dichotomies.inference.device import device_log_proba
from dichotomies.inference.fitted import FittedForest
from dichotomies.learners.frames import FrameCategories, FrameColumns
from dichotomies.persistence.checks import Array, Optional, Part, Size, Such, declares
from dichotomies.training.external import Calibration
from dichotomies.training.judging import LearnerJudge
from dichotomies.training.kept_rows import Drift, KeptRows
from dichotomies.training.learner_choice import choose_learner
from dichotomies.training.train import grow, train

if TYPE_CHECKING:
    import os

    import numpy.typing as npt

    from dichotomies._common.typing import FloatArray, LabelArray, Matrix
    from dichotomies.calibrators.multiclass import MulticlassCalibrator
    from dichotomies.rows import Rows
    from dichotomies.training.plan import Plan
    from dichotomies.tree import ClassTree


_STATISTICS = Such(lambda it: hasattr(it, "n_folds"), "are statistics of the classes")


@declares(
    learner_=str,
    estimator_=Optional(Such(is_classifier, "is a classifier"), may_be_missing=True),
    learner_nll_=Optional(dict, may_be_missing=True),
    structure_=Optional(str, may_be_missing=True),
    n_features_in_=Size("n_features"),
    frame_columns_=Optional(Part(FrameColumns), may_be_missing=True),
    feature_names_in_=Optional(Array("label", "n_features"), may_be_missing=True),
    classes_=Array("label", "n_classes", same="classes"),
    class_count_=Optional(Array("integer", "n_classes"), may_be_missing=True),
    model_=Part(FittedForest, "n_features", "n_classes", "classes"),
    calibration_=Calibration,
    conformal_=Optional(Part(ConformalRows, "n_classes"), may_be_missing=True),
    n_jobs=Optional(Integral),
    categories_=Optional(Part(FrameCategories, "n_features"), may_be_missing=True),
    kept_rows_=Optional(Part(KeptRows, "n_features", "n_classes"), may_be_missing=True),
    statistics_=Optional(Part(_STATISTICS, "n_features", "n_classes"), may_be_missing=True),
    drift_=Optional(Part(Drift), may_be_missing=True),
)
class DichotomyEstimator(
    PartialAnswers, Updates, BatchFits, ClassifierMixin, MetaEstimatorMixin, BaseEstimator
):
    """Base class of the classifiers made of nested dichotomies.

    A subclass declares its parameters; everything fitted is in `model_`.
    """

    _doc_link_module = "dichotomies"
    _doc_link_template = DOCS + "user-guide.md"

    # ------------------------------------------------------------------ training

    def fit(self, X: Matrix, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Grow the tree, or trees, and train the nodes.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)
            The features; of Dask also, which then gathers the rows here.
        y : array of shape (n_rows,)
            The labels: strings, integers or booleans; at least two different ones.
        sample_weight : array of shape (n_rows,), optional
            Weights, passed on to every node.

        Returns
        -------
        self
        """
        X, y, sample_weight = computed(X, y, sample_weight)
        X, y, sample_weight = map(to_host, (X, y, sample_weight))
        with self._whole():
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Matrix, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> Self:
        self._forget_fit()
        plan, X = self._planned(X)
        rows = self._validated(X, y, sample_weight)
        if nodes_get_weight := self._nodes_get_weight(rows.weight):
            rows = rows.weighing() if isinstance(plan.cv, int | str) else rows  # others may number the rows
        node_rows = rows if nodes_get_weight else rows.reweighted(None)
        context = self._context()
        with Bar.over("fitting", shown=bool(context.verbose)):
            self.learner_ = self._fit_stages(plan, rows, node_rows, context)
        return self

    def _fit_stages(self, plan: Plan, rows: Rows, node_rows: Rows, context: Context) -> str:
        """Choose the learner, grow, train and calibrate; return a description of the learner."""
        plan, described = self._with_learner(plan, node_rows, context)
        if context.verbose:
            say(described)
        notes: list[str] = []
        context.stage(GROWING)
        forest = grow(plan, rows, LearnerJudge(plan, node_rows, context), context.rng, notes)
        self.structure_ = "; ".join(notes) or None
        if context.verbose and self.structure_:
            say(self.structure_)
        context.stage(TRAINING)
        self._take_trained(train(plan, forest, node_rows, context), len(rows))
        if context.verbose:
            say(f"calibration: {self.calibration_}")
        return described

    def _with_learner(self, plan: Plan, rows: Rows, context: Context) -> tuple[Plan, str]:
        """Choose the estimator if none is named; return the plan for it, and a description."""
        if not self.is_to_choose():
            return plan, plan.learner.description
        context.stage(CHOOSING)
        choice = choose_learner(plan, rows)
        self.estimator_, self.learner_nll_ = choice.estimator, choice.nll
        return replace(plan, learner=choice.learner), f"{choice.learner.description}; {choice}"

    # ------------------------------------------------------------------ prediction

    @by_block
    def predict_log_proba(self, X: Matrix) -> FloatArray:
        """Logarithms of the class probabilities, exact even where the probability underflows.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of `classes_`. For a Dask array or data frame, a lazy Dask array.
        """
        if (xp := namespace(X)) is not None:
            on_device: FloatArray = device_log_proba(self.model_, self.checked_on_device(X, xp), xp)
            return on_device
        X = self.validated_rows(X)
        return self.model_.predict_log_proba(X, self.n_jobs)

    @by_block
    def predict_proba(self, X: Matrix) -> FloatArray:
        """Class probabilities; every row sums to 1.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of `classes_`. For a Dask array or data frame, a lazy Dask array.
        """
        log_proba = self.predict_log_proba(X)
        return np.exp(log_proba, out=log_proba) if (xp := namespace(X)) is None else xp.exp(log_proba)

    @by_block
    def predict(self, X: Matrix) -> LabelArray:
        """The most probable class of each row.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            For a Dask array or data frame, a lazy Dask array.
        """
        if (xp := namespace(X)) is not None:
            on_host: LabelArray = self.classes_[to_host(xp.argmax(self.predict_log_proba(X), axis=1))]
            return on_host
        X = self.validated_rows(X)
        labels: LabelArray = self.classes_[self.model_.most_probable(X, self.n_jobs)]
        return labels

    # ------------------------------------------------------------------ report and files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to a file, which `dichotomies.load` reads.

        Parameters
        ----------
        path : str or path
            One file of arrays (safetensors) and JSON, no pickle; it is replaced as a whole or not at all.
        """
        from dichotomies.persistence import save  # takes long to import

        check_is_fitted(self)
        save(self, path)

    # ------------------------------------------------------------------ fitted attributes

    @property
    def tree_(self) -> ClassTree:
        """The tree; of several, the first, along which diagnostics decompose the pooled probabilities."""
        check_is_fitted(self)
        return self.model_.tree

    @property
    def tree_source(self) -> Any:
        """The structure by which trees are grown, for the report."""
        return self.structure

    @property
    def external_calibrator_(self) -> MulticlassCalibrator | None:
        """The fitted external calibrator; None without one."""
        check_is_fitted(self)
        return self.model_.external

    def check_relations(self, names: dict[str, Any]) -> None:  # noqa: ARG002 - as of all savable objects
        """Raise unless the base learner is one; for `names` see `dichotomies.persistence.checks`."""
        self._accepted()

    # ------------------------------------------------------------------ scikit-learn's protocols

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of `estimator` as ``estimator__C``; it must be named for that.

        Parameters
        ----------
        **params
            Values by name.

        Returns
        -------
        self
        """
        inner = next((name for name in params if name.startswith("estimator__")), None)
        given = params.get("estimator", self.estimator)
        if inner is not None and (given is None or isinstance(given, str)):
            raise ValueError(
                f"{inner} cannot be set while estimator={given!r}, which leaves the base learner open; "
                f"name one: {type(self).__name__}(LogisticRegression())."
            )
        super().set_params(**params)
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Route `sample_weight`: this estimator uses it, and passes it on where it is requested."""
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(
            estimator=self.base_estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit")
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        accepts = self._input_tags()
        tags.input_tags.sparse = accepts.sparse
        tags.input_tags.allow_nan = accepts.allow_nan
        return tags

    def _html_repr(self) -> str:
        """HTML representation in notebooks: scikit-learn's, and the choices made by a fitted classifier."""
        html: str = super()._html_repr()
        if not self.__sklearn_is_fitted__():
            return html
        said = {"Learner": self.learner_, "Calibration": str(self.calibration_)}
        return html + "".join(f"<p>{name}: {escape(text)}.</p>" for name, text in said.items())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")
