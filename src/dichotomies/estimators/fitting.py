"""`Fitting`: steps that all ways to fit share, from the check of the rows to the fitted attributes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, csr_matrix
from sklearn import get_config
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from dichotomies._common.chunks import n_bytes
from dichotomies._common.parallel import ONE_BLAS_THREAD, Context
from dichotomies._common.progress import CALL, set_call
from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
from dichotomies._common.validation import (
    check_indices,
    check_magnitude,
    is_moderate,
    plain_labels,
    row_weights,
)
from dichotomies._kernels.compile import training
from dichotomies.inference.conformal import ConformalRows
from dichotomies.inference.fitted import FittedForest
from dichotomies.learners import input_dtypes
from dichotomies.learners.base import TakesFrames
from dichotomies.learners.frames import FrameCategories, FrameColumns
from dichotomies.rows import Rows
from dichotomies.training.external import Calibration
from dichotomies.training.kept_rows import Drift, KeptRows
from dichotomies.training.parameters import TreeParameters
from dichotomies.training.plan import Plan
from dichotomies.training.train import Trained

if TYPE_CHECKING:
    from dichotomies.learners.naive_bayes.class_statistics import ClassStatistics


class Fitting(TreeParameters):
    """Base class of the estimators: input that their base learner takes, and attributes that a fit sets.

    Attributes
    ----------
    frame_columns_ : FrameColumns
        Columns of a data frame that clones get as the user gave them; absent otherwise.
    categories_ : FrameCategories
        Categories of a data frame for a base learner that takes them as numbers; absent otherwise.
    """

    classes_: LabelArray
    class_count_: IntArray
    n_features_in_: int
    frame_columns_: FrameColumns
    categories_: FrameCategories
    model_: FittedForest
    calibration_: Calibration
    conformal_: ConformalRows
    kept_rows_: KeptRows
    statistics_: ClassStatistics
    drift_: Drift
    learner_: str
    structure_: str | None

    @property
    def base_estimator(self) -> Any:
        """The estimator at the nodes: the one given or chosen; until then, one that takes the same X."""
        return getattr(self, "estimator_", LogisticRegression()) if self._is_open() else self.estimator

    def is_to_choose(self) -> bool:
        """Return True if the base learner is to be chosen, and is not yet."""
        return self._is_open() and self.learner == "auto" and not hasattr(self, "estimator_")

    def _is_open(self) -> bool:
        return self.estimator is None or (isinstance(self.estimator, str) and self.estimator == "auto")

    # ------------------------------------------------------------------ fitted attributes

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Training as a whole or not at all: if it fails, what was fitted before stays as it was."""
        before, limit = self.__dict__.copy(), set_call(limit=None)
        try:
            # more BLAS threads would only wait for one another on matrices of nodes and calibrators
            with ONE_BLAS_THREAD, training():
                yield
        except BaseException as error:
            self.__dict__ = before
            if isinstance(error, np.linalg.LinAlgError):
                raise ValueError(
                    f"Training met a matrix that cannot be inverted or decomposed ({error}): features are "
                    "too large, or of too different scales; scale them, as StandardScaler does."
                ) from error
            raise
        finally:
            CALL.reset(limit)

    def _forget_fit(self, *, learner: bool = True) -> None:
        """Remove results of an earlier fit that the next may not have, and its choice of the learner."""
        choice = ("estimator_", "learner_nll_") if learner else ()
        for name in ("conformal_", "kept_rows_", "statistics_", *choice):
            self.__dict__.pop(name, None)

    def _take_trained(self, trained: Trained, n_rows: int) -> None:
        """Set the attributes of a model that was fitted to `n_rows` rows."""
        self.model_, self.calibration_, conformal, kept = trained
        if conformal is not None:
            self.conformal_ = conformal
        if kept is not None:
            self.kept_rows_ = kept
        self.drift_ = Drift(0, n_rows, 0, 0, 0, np.zeros(self.model_.forest.n_different, dtype=bool))

    def _context(self) -> Context:
        if not isinstance(self.n_jobs, Integral | NoneType):
            raise TypeError(f"n_jobs must be None or a number of threads or processes, got {self.n_jobs!r}.")
        return Context(check_random_state(self.random_state), self.n_jobs, bool(self.verbose))

    # ------------------------------------------------------------------ plan and rows

    def _planned(self, X: Any) -> tuple[Plan, Any]:
        """Make the plan, and the rows with numbers for the categories that clones see as they are."""
        return self._with_frame(Plan.of(self, self._for_frame(X)), X)

    def _plan_as_fitted(self) -> Plan:
        """Make the plan of a fitted estimator again, with the columns of its data frame."""
        base = self.base_estimator
        if hasattr(self, "categories_"):
            base = _told_of(self.categories_, base)
        plan = Plan.of(self, base)
        if isinstance(plan.learner, TakesFrames) and hasattr(self, "frame_columns_"):
            return replace(plan, learner=plan.learner.in_frame(self.frame_columns_))
        return plan

    def _with_frame(self, plan: Plan, X: Any) -> tuple[Plan, Any]:
        """Give clones the categories of a data frame as the user gave them, and the trees their positions."""
        self.__dict__.pop("frame_columns_", None)
        if not isinstance(plan.learner, TakesFrames) or (columns := FrameColumns.of(X)) is None:
            return plan, X
        self.frame_columns_ = columns
        return replace(plan, learner=plan.learner.in_frame(columns)), columns.numbers(X)

    def _for_frame(self, X: Any) -> Any:
        """The base learner, with the categorical columns of a data frame as a parameter if it has one."""
        self.__dict__.pop("categories_", None)
        find = getattr(self.base_estimator, "frame_categories", None)
        if find is None or (categories := find(X)) is None:
            return self.base_estimator
        self.categories_ = categories
        return _told_of(categories, self.base_estimator)

    def _validated(self, X: Matrix, y: Any, sample_weight: npt.ArrayLike | None) -> Rows:
        """Check the rows and set `classes_`."""
        rows = self._validated_batch(X, y, sample_weight, reset=True)
        self.classes_, self.class_count_ = rows.classes, rows.class_size
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"A classifier needs at least two classes, but y has only one class: {only!r}.")
        return rows

    def _validated_batch(
        self, X: Matrix, y: Any, sample_weight: npt.ArrayLike | None, *, reset: bool = False
    ) -> Rows:
        """Check rows of any number of classes; the number of features must be that of the first batch."""
        check_indices(X)
        X, y = validate_data(self, self._numbered(X), plain_labels(y), reset=reset, **self._accepted())
        check_magnitude(X)
        if y.dtype.kind not in "USbiu":  # strings, booleans and integers always are labels
            check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        weight = None
        if sample_weight is not None:
            weight = row_weights(sample_weight, X.shape[0])
        return Rows(X, codes, classes, weight)

    def _nodes_get_weight(self, weight: FloatArray | None) -> bool:
        """False where metadata routing says that weights are not for the nodes."""
        if weight is None or not get_config()["enable_metadata_routing"]:
            return True
        return "sample_weight" in process_routing(self, "fit", sample_weight=weight).estimator.fit

    def _numbered(self, X: Any) -> Any:
        """A data frame with numbers for its categories."""
        return self.categories_.numbered(X) if hasattr(self, "categories_") else X

    def _accepted(self) -> dict[str, Any]:
        """Kinds of X that the base learner takes, as arguments of `validate_data`."""
        accepts = self._input_tags()
        finite = "allow-nan" if accepts.allow_nan and self.is_to_choose() else not accepts.allow_nan
        return {
            "accept_sparse": "csr" if accepts.sparse else False,
            "dtype": input_dtypes(self.base_estimator),
            "order": "C",  # rows are what nodes and chunks take
            # clones look at the gaps of a data frame themselves
            "ensure_all_finite": False if hasattr(self, "frame_columns_") else finite,
        }

    def _input_tags(self) -> Any:
        """Kinds of X that the base learner takes; before it is chosen, those that any candidate takes."""
        accepts = get_tags(self.base_estimator).input_tags
        if self.is_to_choose():
            accepts.allow_nan = True  # by boosted trees
        return accepts

    def validated_rows(self, X: Matrix) -> Matrix:
        """Check rows to predict, and convert them to the type and layout that the nodes take.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray or CSR matrix
        """
        check_is_fitted(self)
        # in the prediction that these rows are for
        set_call(shows_answers=bool(self.verbose), limit=n_bytes(self.max_memory))
        if hasattr(self, "frame_columns_"):
            X = self.frame_columns_.numbers(X)
        check_indices(X)
        accepted = self._accepted()
        if not self._is_valid(X, accepted):
            X = validate_data(self, self._numbered(X), reset=False, **accepted)
            check_magnitude(X)
        return X

    def checked_on_device(self, X: Any, xp: Any) -> Any:
        """Check rows of another array library that are predicted on their device.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
        xp : namespace of the array
        """
        check_is_fitted(self)
        if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X must have shape (n_rows, {self.n_features_in_}), with at least one row; "
                f"got shape {tuple(X.shape)}."
            )
        X = X if xp.isdtype(X.dtype, "real floating") else xp.astype(X, xp.float32)
        if not bool(xp.all(xp.isfinite(X))):
            raise ValueError("X has NaN or infinite values.")
        return X

    def _is_valid(self, X: Matrix, accepted: dict[str, Any]) -> bool:
        """True if these rows pass all checks as they are; `validate_data` takes longer than most searches."""
        if hasattr(self, "feature_names_in_") or getattr(X, "shape", None) is None or len(X.shape) != 2:
            return False
        if type(X) is np.ndarray:
            values = X if X.flags.c_contiguous else None
        else:
            is_csr = accepted["accept_sparse"] and type(X) in (csr_array, csr_matrix)
            values = X.data if is_csr and X.has_canonical_format else None
        return (
            values is not None
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and X.dtype in accepted["dtype"]
            and is_moderate(values)
        )


def _told_of(categories: FrameCategories, base: Any) -> Any:
    """A base learner with the positions of the categorical columns."""
    return clone(base).set_params(categorical_features=categories.positions.tolist())
