"""Matrix scaling and Dirichlet calibration: a full matrix over the log-probabilities."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from dichotomies._common.typing import FloatArray
from dichotomies.calibrators.multiclass._calibration_rows import CalibrationRows, normalise
from dichotomies.calibrators.multiclass._folds import balanced_folds
from dichotomies.calibrators.multiclass._likelihood import Likelihood, best_scale
from dichotomies.calibrators.multiclass.base import MULTICLASS, MulticlassCalibrator

#: Maximum size of the matrix: L-BFGS keeps two dozen arrays of its size.
LARGEST_MATRIX_BYTES = 2 * 2**20

_STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0)
_FOLDS = 3
_ROUGH_STEPS = 25  # enough to compare regularisation strengths


class _MatrixModel(MulticlassCalibrator):
    """Base of both models: ``softmax(W log p + b)`` with a quadratic penalty on W - t I and b."""

    max_iter: int
    matrix_: FloatArray
    bias_: FloatArray

    def scores(self, x: FloatArray) -> FloatArray:
        """Return ``W log p + b``, computed row by row so that its bits do not depend on the other rows."""
        return np.stack([self.matrix_ @ row for row in x]) + self.bias_

    def _check_size(self) -> None:
        k = self.n_classes_
        if 8 * k * k > LARGEST_MATRIX_BYTES:
            raise ValueError(
                f"{type(self).__name__} needs a matrix of {k} x {k} = {k * k:,} numbers for {k} classes, and "
                f"two dozen of its size to fit it; the limit is {int((LARGEST_MATRIX_BYTES / 8) ** 0.5)} "
                "classes. Use 'vector', which has two numbers for each class."
            )

    def _minimum(
        self, problem: _MatrixProblem, start: FloatArray, strength: FloatArray, *, roughly: bool = False
    ) -> FloatArray:
        """Return W and b (its last column) that minimise the penalised mean NLL."""
        n_steps = _ROUGH_STEPS if roughly else self.max_iter
        found = minimize(
            problem.objective,
            start.ravel(),
            args=(strength,),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": n_steps, "maxfun": 2 * n_steps, "ftol": 1e-10, "gtol": 1e-7},
        )
        self.n_iter_, self.converged_ = int(found.nit), bool(found.status != 1)
        result: FloatArray = found.x.reshape(problem.centre.shape)
        return result

    def _keep(self, parameters: FloatArray) -> None:
        self.matrix_, self.bias_ = parameters[:, :-1].copy(), parameters[:, -1].copy()


class _MatrixProblem:
    """Mean NLL plus ``strength / 2 * (parameters - centre)^2`` of the matrix [W, b]."""

    def __init__(self, rows: CalibrationRows, scale: float) -> None:
        self.x = np.column_stack([rows.dense(), np.ones(rows.shape[0])])
        self.codes = rows.codes
        self.share = rows.weight / rows.total_weight
        self.centre = scale * np.eye(rows.shape[1], rows.shape[1] + 1)

    def log_proba(self, parameters: FloatArray) -> FloatArray:
        return normalise(self.x @ parameters.T)

    def nll(self, parameters: FloatArray) -> float:
        own = self.log_proba(parameters)[np.arange(len(self.codes)), self.codes]
        return -float(self.share @ own)

    def objective(self, flat: FloatArray, strength: FloatArray) -> tuple[float, FloatArray]:
        parameters = flat.reshape(self.centre.shape)
        p = self.log_proba(parameters)
        rows = np.arange(len(p))
        value = -float(self.share @ p[rows, self.codes])
        np.exp(p, out=p)
        p[rows, self.codes] -= 1.0
        p *= self.share[:, None]
        away = parameters - self.centre
        gradient = p.T @ self.x + strength * away
        return value + 0.5 * float(np.sum(strength * away**2)), gradient.ravel()


@MULTICLASS.register("matrix")
class MatrixScaling(_MatrixModel):
    """Matrix scaling: a full matrix and a bias, by nearly maximum likelihood, for few classes with many rows.

    ``p' = softmax(W log p + b)``. A normal prior of standard deviation `spread` around temperature scaling,
    equivalent to less than one row, keeps the parameters of absent and separated classes finite. Raises
    if there are more than 512 classes.

    Parameters
    ----------
    spread : float, default=10
        Standard deviation of the prior.
    max_iter : int, default=2000
        Maximum number of iterations.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_classes, n_classes)
    bias_ : ndarray of shape (n_classes,)

    References
    ----------
    Guo, Pleiss, Sun & Weinberger, *On Calibration of Modern Neural Networks*, ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.calibrators.multiclass import MULTICLASS
    >>> rng = np.random.default_rng(0)
    >>> log_proba = np.log(rng.dirichlet([1, 1, 1], size=500))
    >>> y = np.array([rng.choice(3, p=p) for p in np.exp(log_proba)])
    >>> MULTICLASS.create("matrix").fit(log_proba, y).matrix_.shape
    (3, 3)
    """

    def __init__(self, *, spread: float = 10.0, max_iter: int = 2000) -> None:
        self.spread = spread
        self.max_iter = max_iter

    def fit_rows(self, rows: CalibrationRows) -> None:
        """Fit W and b."""
        self._check_size()
        problem = _MatrixProblem(rows, best_scale(Likelihood(rows)).scale)
        strength = np.full(problem.centre.shape, self.spread**-2 / rows.total_weight)
        self._keep(self._minimum(problem, problem.centre, strength))


@MULTICLASS.register("dirichlet")
class DirichletCalibration(_MatrixModel):
    """Dirichlet calibration: a full matrix with L2-penalised off-diagonal entries and bias (ODIR).

    ``p' = softmax(W log p + b)``, minimising the mean NLL plus ``strength / 2`` times the squares of the
    off-diagonal entries and of b. The diagonal is shrunk toward the temperature-scaling optimum as well, but
    only with the weight of half a row, to keep absent classes finite. Raises if there are more than 512
    classes.

    Parameters
    ----------
    strength : float, default=None
        Regularisation strength. None: the best of 0.001, 0.01, 0.1 and 1 by three-fold cross-validation.
    max_iter : int, default=1000
        Maximum number of iterations.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_classes, n_classes)
    bias_ : ndarray of shape (n_classes,)
    strength_ : float
        The strength used.

    References
    ----------
    Kull, Perello-Nieto, Kängsepp, Silva Filho, Song & Flach, *Beyond temperature scaling*, NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from dichotomies.calibrators.multiclass import MULTICLASS
    >>> rng = np.random.default_rng(0)
    >>> log_proba = np.log(rng.dirichlet([1, 1, 1], size=500))
    >>> y = np.array([rng.choice(3, p=p) for p in np.exp(log_proba)])
    >>> calibrator = MULTICLASS.create("dirichlet", strength=100).fit(log_proba, y)
    >>> bool(np.abs(calibrator.bias_).max() < 0.01)
    True
    """

    def __init__(self, *, strength: float | None = None, max_iter: int = 1000) -> None:
        self.strength = strength
        self.max_iter = max_iter

    def fit_rows(self, rows: CalibrationRows) -> None:
        """Select the strength, then fit W and b."""
        self._check_size()
        scale = best_scale(Likelihood(rows)).scale
        self.strength_ = self._best_strength(rows, scale) if self.strength is None else self.strength
        problem = _MatrixProblem(rows, scale)
        self._keep(self._minimum(problem, problem.centre, _odir(rows, self.strength_)))

    def _best_strength(self, rows: CalibrationRows, scale: float) -> float:
        fold = balanced_folds(rows, _FOLDS)
        nll = np.zeros(len(_STRENGTHS))
        for k in np.unique(fold):
            held_out = rows.take(fold == k)
            if not held_out.weight.any() or not rows.weight[fold != k].any():
                continue
            train = rows.take(fold != k)
            problem, test = _MatrixProblem(train, scale), _MatrixProblem(held_out, scale)
            parameters = problem.centre
            for i in reversed(range(len(_STRENGTHS))):  # strong to weak, each warm-started
                parameters = self._minimum(problem, parameters, _odir(train, _STRENGTHS[i]), roughly=True)
                nll[i] += held_out.total_weight * test.nll(parameters)
        return _STRENGTHS[int(len(nll) - 1 - np.argmin(nll[::-1]))]


def _odir(rows: CalibrationRows, strength: float) -> FloatArray:
    k = rows.shape[1]
    result = np.full((k, k + 1), strength)
    np.fill_diagonal(result, 1 / rows.total_weight)
    return result
