"""Making one distribution of several, without leaving the logarithms."""

from __future__ import annotations

import numpy as np

from dichotomies._common.typing import FloatArray


class GeometricPool:
    """The normalised geometric mean: the mean of log-probabilities, up to a constant per row.

    A class that one member holds to be impossible is improbable in the pool; independent errors cancel.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.inference.pooling import GeometricPool
    >>> out = np.empty((1, 2))
    >>> pool = GeometricPool(out)
    >>> for member in ([[0.5, 0.5]], [[0.9, 0.1]]):
    ...     pool.add(np.log(member))
    >>> pool.finish()
    >>> np.exp(out)
    array([[0.75, 0.25]])
    """

    def __init__(self, out: FloatArray) -> None:
        self._out, self._n = out, 0

    def add(self, log_proba: FloatArray) -> None:
        """Take in one member's log-probabilities."""
        if self._n == 0:
            self._out[:] = log_proba
        else:
            self._out += log_proba
        self._n += 1

    def finish(self) -> None:
        """Leave the pooled log-probabilities in the array."""
        self._out /= self._n
        self._out -= self._out.max(axis=1, keepdims=True)
        self._out -= np.log(np.exp(self._out).sum(axis=1, keepdims=True))


class ArithmeticPool:
    """The mean of the probabilities."""

    def __init__(self, out: FloatArray) -> None:
        self._out, self._n = out, 0

    def add(self, log_proba: FloatArray) -> None:
        """Take in one member's log-probabilities."""
        if self._n == 0:
            self._out[:] = log_proba
        else:
            np.logaddexp(self._out, log_proba, out=self._out)
        self._n += 1

    def finish(self) -> None:
        """Leave the pooled log-probabilities in the array."""
        self._out -= np.log(self._n)


POOLINGS: dict[str, type[GeometricPool] | type[ArithmeticPool]] = {
    "geometric": GeometricPool,
    "arithmetic": ArithmeticPool,
}


def check_pooling(name: object) -> str:
    """The name of a way to pool."""
    if not isinstance(name, str) or name not in POOLINGS:
        raise ValueError(f"pooling must be one of {sorted(POOLINGS)}, got {name!r}.")
    return name
