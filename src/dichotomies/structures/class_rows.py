"""Binary classifiers trained on subsets of the classes while a tree is grown."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from dichotomies._common.typing import BoolArray, FloatArray, IntArray, Matrix
from dichotomies.structures.base import GrowingTask


class ClassRows:
    """Rows of any set of classes, and classifiers trained on them.

    Parameters
    ----------
    task : GrowingTask
        Rows, classes and weights.
    estimator : scikit-learn classifier
        Cloned for every fit; parameters ``random_state`` that are None are drawn from `rng`.
    rng : RandomState
        Source of seeds.
    """

    def __init__(self, task: GrowingTask, estimator: Any, rng: Any) -> None:
        self._task, self._estimator, self._rng = task, estimator, rng

    @cached_property
    def _by_class(self) -> list[IntArray]:
        rows = self._task.rows
        return np.split(rows.by_class, np.cumsum(rows.class_size)[:-1])

    def of(self, codes: IntArray) -> IntArray:
        """Return the row indices of some classes, in their original order."""
        return np.sort(np.concatenate([self._by_class[code] for code in codes]))

    def take(self, rows: IntArray) -> Matrix:
        """The features of some rows."""
        return self._task.rows.features_of(rows)

    def weight(self, rows: IntArray) -> FloatArray:
        """The weights of some rows."""
        weight = self._task.rows.weight
        return np.ones(len(rows)) if weight is None else weight[rows]

    def is_of(self, rows: IntArray, codes: IntArray) -> BoolArray:
        """Return a mask of the rows whose class is among `codes`."""
        return np.isin(self._task.rows.codes[rows], codes)

    def trained(self, rows: IntArray, is_left: BoolArray) -> Any:
        """Fit a clone of the estimator to separate rows that go left (class 1) from the others (class 0)."""
        model = clone(self._estimator)
        seeds = {
            name: self._rng.randint(2**31 - 1)
            for name, value in sorted(model.get_params(deep=True).items())
            if value is None and name.rpartition("__")[2] == "random_state"
        }
        model.set_params(**seeds)
        weighted = self._task.rows.weight is not None and has_fit_parameter(model, "sample_weight")
        weights = {"sample_weight": self.weight(rows)} if weighted else {}
        return model.fit(self.take(rows), is_left.astype(np.intp), **weights)
