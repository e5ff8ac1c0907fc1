"""A fitted model together with the rows it is evaluated on, read in chunks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dichotomies._common.chunks import chunk_rows, for_each_chunk, row_slices
from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
from dichotomies._common.validation import row_weights
from dichotomies._kernels.composition import class_log_proba
from dichotomies.calibrators.multiclass import MulticlassCalibrator
from dichotomies.inference.fitted import FittedForest
from dichotomies.learners import Scorer
from dichotomies.metrics._input import class_codes
from dichotomies.rows import Rows
from dichotomies.tree import ClassTree

#: Number of chunks whose results are held before they are summed in row order.
_CHUNKS_HELD = 16


@dataclass(frozen=True, eq=False)
class EvaluatedModel:
    """The fitted model of a nested dichotomy, and labelled rows to evaluate it on."""

    model: FittedForest
    rows: Rows
    n_jobs: int | None

    @classmethod
    def of(cls, clf: Any, X: Matrix, y: npt.ArrayLike, sample_weight: Any = None) -> EvaluatedModel:
        """Take the model of a fitted classifier, and check the rows."""
        clf, X = tree_classifier(clf, X)
        codes = codes_of(y, clf.classes_, X.shape[0])
        rows = Rows(X, codes, clf.classes_, row_weights(sample_weight, len(codes)))
        return cls(clf.model_, rows, clf.n_jobs)

    @property
    def tree(self) -> ClassTree:
        """The tree along which the NLL is decomposed."""
        return self.model.tree

    @cached_property
    def scorer(self) -> Scorer:
        """Log-odds at the nodes of `tree` before external calibration."""
        return self.model.node_scorer

    @property
    def external(self) -> MulticlassCalibrator | None:
        """The external calibrator."""
        return self.model.external

    @property
    def weight(self) -> FloatArray:
        """Weight of each row."""
        assert self.rows.weight is not None
        return self.rows.weight

    @cached_property
    def leaf_of_row(self) -> IntArray:
        """Position of each row's class among the leaves, (n_rows,)."""
        return self.tree.leaf_position[self.rows.codes]

    def sum_chunks(self, measure: Callable[[slice, FloatArray], Any]) -> Any:
        """Sum the results of `measure`, which may be tuples, over chunks of log-odds.

        Chunks are added in row order, so that the sum does not depend on `n_jobs`, and only a few results
        are held at a time.
        """
        total: Any = None
        step = _CHUNKS_HELD * chunk_rows(self.tree.n_nodes)
        for held in row_slices(len(self.rows), step):
            results: dict[int, Any] = {}

            def keep(
                rows: slice, log_odds: FloatArray, results: Any = results, begin: int = held.start
            ) -> None:
                results[rows.start] = measure(slice(begin + rows.start, begin + rows.stop), log_odds)

            for_each_chunk(self.tree.n_nodes, self.scorer, self.rows.X[held], keep, self.n_jobs)
            for start in sorted(results):
                total = results[start] if total is None else _plus(total, results[start])
        return total

    def probabilities(self, log_odds: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Class probabilities of a chunk before and after external calibration (None without it)."""
        log_proba = class_log_proba(self.tree, log_odds)
        before = np.exp(log_proba)
        if self.external is None:
            return before, None
        return before, np.exp(self.external.predict_log_proba(log_proba))


def _plus(total: Any, more: Any) -> Any:
    return tuple(map(_plus, total, more)) if isinstance(total, tuple) else total + more


def tree_classifier(clf: Any, X: Matrix) -> tuple[Any, Matrix]:
    """Return the nested dichotomy, which may be the last step of a pipeline, and its validated input."""
    fitted_dichotomy(clf)  # before any row is transformed
    while isinstance(clf, Pipeline):
        clf, X = clf[-1], clf[:-1].transform(X) if len(clf) > 1 else X
    return clf, clf.validated_rows(X)


def fitted_dichotomy(clf: Any) -> Any:
    """Return the nested dichotomy, which may be the last step of a pipeline."""
    check_is_fitted(clf)
    if isinstance(clf, Pipeline):
        return fitted_dichotomy(clf[-1])
    if not hasattr(clf, "model_"):
        raise TypeError(
            "Only a nested dichotomy has nodes: give a fitted NestedDichotomyClassifier, "
            "NestedDichotomyEnsemble or CalibratedClassifier, or a pipeline that ends in one, not a "
            f"{type(clf).__name__}."
        )
    return clf


def codes_of(y: npt.ArrayLike, classes: LabelArray, n_rows: int) -> IntArray:
    """Return the index of each label among the classes; raise if a label is unknown."""
    if np.shape(y) != (n_rows,):
        raise ValueError(f"y must have one label for each of the {n_rows} rows, got shape {np.shape(y)}.")
    return class_codes(y, classes)
