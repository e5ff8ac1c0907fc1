"""Parameters of the objective of logistic regression that are the same at every node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dichotomies._kernels.newton.node import Objective
from dichotomies.learners.base import Unsupported

if TYPE_CHECKING:
    from dichotomies._common.typing import BoolArray, FloatArray

#: Derivatives of single-precision data are not known better than this, relative to the mean loss.
_SINGLE_PRECISION_TOL = 1e-6


@dataclass(frozen=True)
class Settings:
    """Parameters of scikit-learn's `LogisticRegression`, apart from C.

    Attributes
    ----------
    free_intercept : bool
        Fit an intercept without penalty.
    intercept_scale : float
        The constant feature of an intercept with penalty, as liblinear has it; 0 without one.
    class_weight : None, "balanced" or dict
        Weights of the sides: 1 is the one with the highest class code.
    tol : float
        Largest derivative of the mean loss.
    max_iter : int
        Newton steps.
    """

    free_intercept: bool
    intercept_scale: float
    class_weight: Any
    tol: float
    max_iter: int

    def objective(self, left_is_high: BoolArray, C: FloatArray, dtype: Any) -> Objective:
        """The objective of nodes, each for every C of its row of `C` (n_nodes, n_grid).

        Parameters
        ----------
        left_is_high : (n_nodes,)
            Whether the left side is the one with the highest class code.
        """
        left_factor, right_factor = np.ones(len(C)), np.ones(len(C))
        if isinstance(self.class_weight, dict):
            low, high = (float(self.class_weight.get(side, 1.0)) for side in (0, 1))
            left_factor = np.where(left_is_high, high, low)
            right_factor = np.where(left_is_high, low, high)
        return Objective(
            C=np.ascontiguousarray(C, dtype=np.float64),
            left_factor=left_factor,
            right_factor=right_factor,
            balanced=isinstance(self.class_weight, str),
            free_intercept=self.free_intercept,
            intercept_scale=self.intercept_scale,
            tol=max(self.tol, _SINGLE_PRECISION_TOL) if dtype == np.float32 else float(self.tol),
            max_iter=int(self.max_iter),
        )


def check_class_weight(class_weight: Any) -> None:
    """Refuse what scikit-learn would refuse, or what leaves a side without rows."""
    if not isinstance(class_weight, dict):
        return
    if set(class_weight) - {0, 1}:
        raise Unsupported("class_weight has labels other than 0 and 1, which are the sides of a node")
    if not all(np.isfinite(weight) and weight > 0 for weight in class_weight.values()):
        raise Unsupported("class_weight has a weight that is not positive")
