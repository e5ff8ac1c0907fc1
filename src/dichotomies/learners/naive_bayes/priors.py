"""Prior log-odds of a node's sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dichotomies._common.typing import BoolArray, FloatArray
from dichotomies.learners.base import Unsupported
from dichotomies.learners.naive_bayes.groups import Sides
from dichotomies.persistence import savable


@savable("prior")
@dataclass(frozen=True)
class Prior:
    """Source of a node's prior log-odds.

    Attributes
    ----------
    learned : bool
        Take them from the weights of the sides; otherwise they are 0. Ignored if `given`.
    given : float or None
        The user's log-odds of the side that contains the highest class code.
    """

    learned: bool = True
    given: float | None = None

    @classmethod
    def of(cls, given: Any, learned: bool = True) -> Prior:
        """Read scikit-learn's `class_prior` or `priors`."""
        if given is None:
            return cls(learned)
        if len(given) != 2:
            raise ValueError("Number of priors must match number of classes.")
        other, highest = np.asarray(given, dtype=np.float64)
        if not (other > 0 and highest > 0):
            raise Unsupported("a prior of zero leaves a side without probability")
        return cls(learned, float(np.log(highest) - np.log(other)))

    def log_odds(self, left_is_positive: BoolArray, sides: Sides) -> FloatArray:
        """Prior log-odds of going left, for each node; meaningless where a side is empty.

        Parameters
        ----------
        left_is_positive : (n_nodes,)
            True where the left side contains the highest class code.
        """
        if self.given is not None:
            return np.where(left_is_positive, self.given, -self.given)
        if not self.learned:
            return np.zeros(len(left_is_positive))
        weight = np.where(sides.size > 0, sides.weight, 1.0)
        return np.log(weight[:, 0]) - np.log(weight[:, 1])
