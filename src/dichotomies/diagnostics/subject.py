"""A fitted classifier together with the rows it is looked at with, read a chunk at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dichotomies.inference.prediction import chunk_rows, class_log_proba, for_each_chunk
from dichotomies.metrics._input import class_codes, row_weights

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from dichotomies._common.typing import FloatArray, IntArray, LabelArray, Matrix
    from dichotomies.inference.prediction import Recalibration
    from dichotomies.learners import Scorer
    from dichotomies.tree import ClassTree

#: Chunks whose results are held before they are added up, in the order of the rows.
_CHUNKS_HELD = 16


@dataclass(frozen=True)
class Subject:
    """The parts of a fitted nested dichotomy, and rows with their classes and weights."""

    tree: ClassTree
    scorer: Scorer
    external: Recalibration | None
    n_jobs: int | None
    X: Matrix
    codes: IntArray
    weight: FloatArray

    @classmethod
    def of(cls, clf: Any, X: Matrix, y: npt.ArrayLike, sample_weight: Any = None) -> Subject:
        """Take a fitted classifier apart and check the rows."""
        clf, X = tree_classifier(clf, X)
        codes = codes_of(y, clf.classes_, X.shape[0])
        return cls(
            tree=clf.tree_,
            scorer=clf._scorer,
            external=clf.external_calibrator_,
            n_jobs=clf.n_jobs,
            X=X,
            codes=codes,
            weight=row_weights(sample_weight, len(codes)),
        )

    @cached_property
    def leaf_of_row(self) -> IntArray:
        """Position of each row's class among the leaves, (n_rows,)."""
        return self.tree.leaf_position[self.codes]

    def add_up(self, measure: Callable[[slice, FloatArray], Any]) -> Any:
        """Sum of what `measure` makes of each chunk's log-odds, or of each entry if it makes a tuple.

        The chunks are added in the order of the rows, so that the sum does not depend on `n_jobs`, and
        only a few results are held at a time.
        """
        total: Any = None
        step = _CHUNKS_HELD * chunk_rows(self.tree.n_nodes)
        for begin in range(0, self.X.shape[0], step):
            results: dict[int, Any] = {}

            def keep(rows: slice, log_odds: FloatArray, results: Any = results, begin: int = begin) -> None:
                results[rows.start] = measure(slice(begin + rows.start, begin + rows.stop), log_odds)

            for_each_chunk(self.tree, self.scorer, self.X[begin : begin + step], keep, self.n_jobs)
            for start in sorted(results):
                total = results[start] if total is None else _plus(total, results[start])
        return total

    def probabilities(self, log_odds: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Class probabilities of a chunk before and after external calibration (None without one)."""
        log_proba = class_log_proba(self.tree, log_odds)
        before = np.exp(log_proba)
        if self.external is None:
            return before, None
        return before, np.exp(self.external.predict_log_proba(log_proba))


def _plus(total: Any, more: Any) -> Any:
    return tuple(map(_plus, total, more)) if isinstance(total, tuple) else total + more


def tree_classifier(clf: Any, X: Matrix) -> tuple[Any, Matrix]:
    """The nested dichotomy, which may be the last step of a pipeline, and the rows as it takes them."""
    fitted_dichotomy(clf)  # before any row is transformed
    while isinstance(clf, Pipeline):
        clf, X = clf[-1], clf[:-1].transform(X) if len(clf) > 1 else X
    return clf, clf._validated_for_prediction(X)


def fitted_dichotomy(clf: Any) -> Any:
    """The nested dichotomy, which may be the last step of a pipeline."""
    check_is_fitted(clf)
    if isinstance(clf, Pipeline):
        return fitted_dichotomy(clf[-1])
    if not (hasattr(clf, "tree_") and hasattr(clf, "_scorer")):
        raise TypeError(
            f"Only a nested dichotomy has nodes to look at: give a fitted NestedDichotomyClassifier or "
            f"NestedDichotomyEnsemble, or a pipeline that ends in one, not a {type(clf).__name__}."
        )
    return clf


def codes_of(y: npt.ArrayLike, classes: LabelArray, n_rows: int) -> IntArray:
    """Position of each label among the classes; a label that is not there is an error that names it."""
    if np.shape(y) != (n_rows,):
        raise ValueError(f"y must have one label for each of the {n_rows} rows, got shape {np.shape(y)}.")
    return class_codes(y, classes)
