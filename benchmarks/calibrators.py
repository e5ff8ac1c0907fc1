"""Our calibrators beside those of netcal, probmetrics, betacal and venn-abers: NLL, ECE and time.

The other packages need PyTorch, so they go into an environment of their own::

    python -m venv arena && arena/bin/pip install -e . netcal probmetrics betacal venn-abers
    arena/bin/python -m benchmarks.calibrators --save
"""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import calibration_methods
from benchmarks.calibration_problems import PROBLEMS
from benchmarks.race import arguments, markdown_table, report
from dichotomies.metrics import expected_calibration_error

if TYPE_CHECKING:
    from benchmarks.calibration_methods import Method
    from benchmarks.calibration_problems import Probabilities
    from dichotomies._common.typing import FloatArray, IntArray

TEXT = """
# Calibrators beside those of other packages

Class probabilities of six models on rows they were not trained on, calibrated on one part of these rows and
evaluated on the rest: a wide residual network (cifar100_probs, whose probabilities are published), flat
Gaussian naive Bayes (letter), a flat random forest (optdigits), flat multinomial naive Bayes (clinc150), a
tree of logistic regressions (reuters52), and another on 200 characters with about five calibration rows each
(omniglot). Every method has its package's defaults. One-vs-rest methods calibrate each class against the
others and normalise. Probabilities below 1e-15 are read as 1e-15, in the input of all methods and in their
NLL. *ECE* is the mean, over the datasets a method ran on, of the expected calibration error of the most
probable class, in 20 bins of equal width. *Time* is the geometric mean over these datasets of the processor
time for fitting and predicting in one thread, relative to the method that has 1; kernels are compiled
beforehand. "-": not run, since it takes minutes. One division of the rows; differences in the third digit
mean little.

The tables below, read:

- Our penalised `vector` has the lowest NLL of all on cifar100_probs and clinc150, and nearly on reuters52,
  without tuning and whatever the number of rows per class. probmetrics' structured scaling is better on
  letter and optdigits (matrix) and on omniglot (vector, by 2 %), and worse on the other three. On letter and
  reuters52 our `dirichlet` is better than either, at 16 times the time.
- A one-vs-rest method is rarely the best one with many classes. `smooth-isotonic` is worse than `isotonic`
  there where classes have few rows (reuters52, omniglot), and `bbq` nearly everywhere.
- For two classes the parametric methods, `isotonic` and `smooth-isotonic` are within about 2 % of each other
  but for optdigits, which is nearly separated: Platt's targets, which keep our parameters finite, cost 5 %
  there against plain maximum likelihood (betacal, netcal, probmetrics). `smooth-isotonic` is never worse than
  `isotonic`; `bbq` has a higher NLL, and is better than netcal's on all sets but two.
- Methods that answer 0 (isotonic regression and histograms of netcal and probmetrics, ENIR) pay for it in
  NLL.
- Time: temperature scaling, beta, quadratic and Platt scaling, Venn-Abers and BBQ are faster here than in the
  other packages, BBQ and beta by a factor of 3 to 100; probmetrics' structured vector scaling is faster than
  our `vector`, and netcal's isotonic regression than ours for two classes.
"""

BINARY_TEXT = """
## Binary

The same probabilities, summed over the first half of the classes: does the class belong to it?
"""

LEAST = 1e-15
QUICK = 20.0  # seconds below which a method runs twice, and the second time counts


def nll(y: IntArray, proba: FloatArray) -> float:
    """Mean negative log-likelihood."""
    return float(-np.log(np.maximum(proba[np.arange(len(y)), y], LEAST)).mean())


def measured(method: Method, data: Probabilities) -> tuple[float, float, float]:
    """NLL, ECE and seconds of a method."""
    seconds = QUICK
    for _ in range(2):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            begun = time.process_time()
            proba = method(data.proba, data.y, data.test_proba)
            seconds = time.process_time() - begun
        if seconds >= QUICK:
            break
    return (
        nll(data.test_y, proba),
        expected_calibration_error(data.test_y, proba, labels=np.arange(proba.shape[1])),
        seconds,
    )


def compare(methods: dict[str, Method], problems: list[Probabilities], unit: str) -> list[list[str]]:
    """Return a row for each method: NLL on each problem, mean ECE, time relative to the method `unit`."""
    results = {name: [_tried(name, method, data) for data in problems] for name, method in methods.items()}
    of_unit = np.array([seconds for _, _, seconds in results[unit]])
    rows = []
    for name, found in results.items():
        losses, errors, seconds = np.array(found).T
        was_run = ~np.isnan(losses)
        times = np.exp(np.mean(np.log(seconds[was_run] / of_unit[was_run])))
        cells = ["-" if np.isnan(loss) else f"{loss:.3f}" for loss in losses]
        rows.append([name, *cells, f"{np.nanmean(errors):.4f}", f"{times:.2g}"])
    return rows


def _tried(name: str, method: Method, data: Probabilities) -> tuple[float, float, float]:
    if data.proba.shape[1] > calibration_methods.MOST_CLASSES.get(name, np.inf):
        return np.nan, np.nan, np.nan
    result = measured(method, data)
    print(f"{data.name}: {name}: NLL {result[0]:.4f}, ECE {result[1]:.4f}, {result[2]:.3g} s", flush=True)
    return result


def main() -> None:
    options = arguments(__doc__, repeats=1)
    warnings.simplefilter("ignore")
    problems = [make() for make in PROBLEMS]
    with threadpool_limits(1):
        many = compare(calibration_methods.multiclass(), problems, "vector")
        two = compare(calibration_methods.binary(), [data.halves() for data in problems], "platt")
    names = [f"{data.name} ({data.proba.shape[1]})" for data in problems]
    versions = ", ".join(
        f"{name} {version(name)}" for name in ("netcal", "probmetrics", "betacal", "venn-abers")
    )
    header = ["method", *names, "ECE", "time"]
    text = f"{TEXT}\nThe others: {versions}. Set-up: the first lines of `benchmarks/calibrators.py`.\n\n"
    text += f"## All classes\n\n{markdown_table(header, many)}\n{BINARY_TEXT}"
    report(
        "calibrators",
        text,
        ["method", *(data.name for data in problems), "ECE", "time"],
        two,
        save=options.save,
    )


if __name__ == "__main__":
    main()
