"""Vector scaling against a plain numpy and scipy L-BFGS: time of an evaluation, of a fit, and memory.

``--small`` leaves out the larger size.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from benchmarks.race import arguments, ratio, report
from dichotomies.calibrators.multiclass import MULTICLASS
from dichotomies.calibrators.multiclass._evaluation import Likelihood
from dichotomies.calibrators.multiclass._rows import CalibrationRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from dichotomies._typing import FloatArray, IntArray

TEXT = """
# Vector scaling at thousands of classes

How many times as long a plain implementation takes: numpy in double precision with `logsumexp` and an
indicator matrix, minimised by scipy's L-BFGS. One thread on both sides. An evaluation is the objective and
its gradient. The plain fit is stopped after as many seconds as ours took times 15, if it has not ended
before: its NLL then is what it had reached. The rows are drawn: log-probabilities of a random softmax,
labels from a vector-scaled version of them. Memory is what a fit allocates at its peak beyond its input of
single-precision log-probabilities.
"""

SIZES = [(1_000, 10_000), (5_000, 36_000)]
_PATIENCE = 15


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

    def fit(self, seconds: float) -> tuple[float, float, int]:
        """Lowest NLL found, time taken and evaluations, within about so many seconds."""
        begun, seen = time.perf_counter(), [np.inf]

        def stop(intermediate_result: Any) -> None:
            seen.append(float(intermediate_result.fun))
            if time.perf_counter() - begun > seconds:
                raise StopIteration

        n_classes = self.x.shape[1]
        start = np.concatenate([np.ones(n_classes), np.zeros(n_classes)])
        found = minimize(self, start, jac=True, method="L-BFGS-B", callback=stop)
        return min(seen), time.perf_counter() - begun, int(found.nfev)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def _race(n_classes: int, n_rows: int, repeats: int) -> list[str]:
    log_proba, y = _drawn(n_classes, n_rows)
    likelihood = Likelihood(CalibrationRows.read(log_proba, y, np.ones(n_rows)), n_jobs=1)
    ones, zeros = np.ones(n_classes), np.zeros(n_classes)
    likelihood.class_sums(ones, zeros)  # compiles
    calibrator = MULTICLASS.create("vector-ml", tol=1e-6, n_jobs=1)
    seconds, fitted = _timed(lambda: calibrator.fit(log_proba, y))
    penalised, _ = _timed(lambda: MULTICLASS.create("vector", n_jobs=1).fit(log_proba, y))
    tracemalloc.start()
    calibrator.fit(log_proba, y)
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    ours = likelihood.class_sums(fitted.scale_, fitted.bias_)[0] / n_rows
    plain = Plain(log_proba, y)
    start = np.concatenate([ones, zeros])
    evaluation = ratio(
        lambda: likelihood.class_sums(ones, zeros, curvature=False), lambda: plain(start), repeats
    )
    theirs, their_seconds, _ = plain.fit(_PATIENCE * seconds)
    result = [f"{evaluation:.1f}", f"{their_seconds / seconds:.1f}", f"{seconds:.1f}", f"{penalised:.1f}"]
    return [*result, f"{ours:.6f}", f"{theirs:.6f}", f"{memory / 2**20:.0f} MiB"]


def main() -> None:
    small = "--small" in sys.argv
    sys.argv = [each for each in sys.argv if each != "--small"]
    options = arguments(__doc__)
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = []
    for n_classes, n_rows in SIZES[: 1 if small else None]:
        rows.append([f"{n_classes:,} x {n_rows:,}", *_race(n_classes, n_rows, options.repeats)])
        print(*rows[-1])
    columns = "classes x rows|evaluation|fit|our seconds|penalised, our seconds|our NLL|plain NLL|our memory"
    report("vector_scaling", TEXT, columns.split("|"), rows, save=options.save)


if __name__ == "__main__":
    main()
