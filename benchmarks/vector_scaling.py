"""Vector scaling against a plain numpy and scipy implementation: an evaluation, the optimum, and memory."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from benchmarks.race import arguments, ratio, report
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.calibrators.multiclass._calibration_rows import CalibrationRows
from dichotomies.calibrators.multiclass._likelihood import Likelihood

if TYPE_CHECKING:
    from dichotomies._common.typing import FloatArray, IntArray

TEXT = """
# Vector scaling at thousands of classes

Against a plain implementation: numpy in double precision with `logsumexp` and an indicator matrix. One
thread on both sides. *Evaluation*: how many times as long the plain objective and gradient take. Then,
judged by the plain implementation in double precision: the NLL at our maximum-likelihood solution, the
largest entry of the gradient there (0 at the optimum), and the NLL that scipy's L-BFGS reaches with the plain
implementation from the same start in the evaluations given (the larger size is too slow for it). The rows are
drawn: log-probabilities of a random softmax, labels from a vector-scaled version of them. Memory is what a
fit allocates at its peak beyond its input of single-precision log-probabilities.
"""

SIZES = [(1_000, 10_000), (5_000, 36_000)]
_PLAIN_EVALUATIONS = 300


def _drawn(n_classes: int, n_rows: int) -> tuple[Any, IntArray]:
    rng = np.random.default_rng(0)
    scale = 0.6 + 0.06 * rng.normal(size=n_classes)
    bias = 0.3 * rng.normal(size=n_classes) + 9 * (scale - 0.6)
    log_proba, y = np.empty((n_rows, n_classes), dtype=np.float32), np.empty(n_rows, dtype=np.intp)
    for i in range(0, n_rows, 500):
        z = rng.gamma(2, 2, size=(min(500, n_rows - i), n_classes))
        z -= logsumexp(z, axis=1, keepdims=True)
        log_proba[i : i + 500] = z
        y[i : i + 500] = (scale * z + bias + rng.gumbel(size=z.shape)).argmax(axis=1)
    return log_proba, y


class Plain:
    """The mean NLL as one would write it down, in double precision."""

    def __init__(self, log_proba: Any, y: IntArray) -> None:
        self.x = log_proba.astype(np.float64)
        self.onehot = np.zeros(log_proba.shape)
        self.onehot[np.arange(len(y)), y] = 1.0

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient."""
        scale, bias = theta.reshape(2, -1)
        z = self.x * scale + bias
        log_p = z - logsumexp(z, axis=1, keepdims=True)
        residual = np.exp(log_p) - self.onehot
        value = -np.sum(self.onehot * log_p) / len(z)
        gradient = np.concatenate([(residual * self.x).sum(axis=0), residual.sum(axis=0)]) / len(z)
        return float(value), gradient

    def fit(self, start: FloatArray) -> Any:
        """What scipy's L-BFGS finds."""
        options: Any = {"maxfun": _PLAIN_EVALUATIONS, "ftol": 1e-10, "gtol": 1e-7}
        return minimize(self, start, jac=True, method="L-BFGS-B", options=options)


def _race(n_classes: int, n_rows: int, repeats: int) -> list[str]:
    log_proba, y = _drawn(n_classes, n_rows)
    likelihood = Likelihood(CalibrationRows.read(log_proba, y, np.ones(n_rows)), n_jobs=1)
    ones, zeros = np.ones(n_classes), np.zeros(n_classes)
    likelihood.class_sums(ones, zeros)  # compiles
    calibrator = MULTICLASS.create("vector-ml", tol=1e-6, n_jobs=1)
    tracemalloc.start()
    calibrator.fit(log_proba, y)
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    plain, start = Plain(log_proba, y), np.concatenate([ones, zeros])
    evaluation = ratio(
        lambda: likelihood.class_sums(ones, zeros, curvature=False), lambda: plain(start), repeats
    )
    value, gradient = plain(np.concatenate([calibrator.scale_, calibrator.bias_]))
    result = [f"{evaluation:.1f}", calibrator.n_iter_, f"{value:.6f}", f"{np.abs(gradient).max():.0e}"]
    theirs = "not run"
    if n_classes <= 1_000:
        found = plain.fit(start)
        theirs = f"{found.fun:.6f} ({found.nfev})"
    return [*map(str, result), theirs, f"{memory / 2**20:.0f} MiB"]


def main() -> None:
    options = arguments(__doc__, small="leave out the larger size")
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = []
    for n_classes, n_rows in SIZES[: 1 if options.small else None]:
        rows.append([f"{n_classes:,} x {n_rows:,}", *_race(n_classes, n_rows, options.repeats)])
        print(*rows[-1])
    columns = (
        "classes x rows|evaluation|our iterations|our NLL|our gradient|L-BFGS NLL (evaluations)|our memory"
    )
    report("vector_scaling", TEXT, columns.split("|"), rows, save=options.save)


if __name__ == "__main__":
    main()
